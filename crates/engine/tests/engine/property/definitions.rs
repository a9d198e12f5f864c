//! The workflows of the property tests.

/// Their definitions, in the form of the scripts.
pub(super) const DEFINITIONS: [&str; 12] = [
    "define work 1 retention=400 target=$.flo.workflow retry-run=2,20,40,failures on-error=rescue on-cancel=tidy\n concurrency \"$.input.n\" limit=2 on-limit=cancel_oldest\n attribute n number $.input.n\n start: run @a retry(2 constant 100) undo(@workflow/blank 2 constant 20) \
     poll(1 constant 50 initial=20) -> success=ask failure=flo.Failed pending=ask\n \
     ask: wait go timeout=500 -> success=nest timeout=nest\n \
     nest: run @workflow/leaf:1 timeouts(attempt=300) retry(2 listed=0) input={\"n\":\"$.input.n\",\"got\":\"$.steps.ask.output\"} \
     -> success=flo.Completed failure=flo.Failed\n \
     rescue: block timeout=60\n tidy: block timeout=80\n \
     branch rescue-block of rescue list\n note: timer ms=10\n mend: run @b input={\"why\":\"$.cause\"}\n \
     branch tidy-block of tidy single\n sweep: run @a input=\"$.cause\"",
    "define leaf 1 target=$.flo.parent_run_id retention=100 output={\"n\":\"$.input.n\"} check={}\n concurrency [1] limit=2 name=pool\n concurrency \"$.input.n\" name=pool\n \
     start: run @b retry(2 constant 0) undo(attempted @missing) poll(1 constant 10) timeouts(attempt=90 total=250 queue=70 heartbeat=60) \
     -> success=flo.Completed failure=flo.Failed",
    "define checked 1 schema={}\n lock $.flo.workflow\n lock wfrun-.*3\n start: run @c -> success=flo.Completed target_disabled=wait\n \
     wait: wait go timeout=300 -> success=flo.Completed",
    "define parent 1 timeout=600\n start: run @workflow/checked retry(3 exponential 50 within=400) \
     -> success=again failure=again execution_failure=flo.Failed\n \
     again: run @workflow/leaf check={} retry(2 constant 20) -> success=flo.Completed failure=flo.Completed",
    "define rounds 1 target=$.input.n max-steps=40 warn-after=1\n lock 3$\n concurrency [1] limit=3 name=pool on-limit=existing\n start: wait tick -> success=act\n act: run @missing fallback(@b 2 constant 20) undo(@a) -> failure=body success=body\n \
     body: block timeout=130 retry(2 constant 60) -> success=start failure=start\n branch body-block of body list\n \
     first: wait go timeout=80 -> timeout=flo.Failed\n inner: block retry(2 constant 0)\n \
     branch inner-block of inner list\n second: wait go timeout=70\n third: run @a undo(attempted @missing)\n fourth: wait go timeout=30 -> timeout=flo.Failed",
    "define looped 1 target=$.flo.started_at retention=300 state={\"n\":1} output=\"$.state\"\n terminal Stopped failed\n \
     start: foreach items=[1,{\"a\":2},\"x\"] timeout=150 concurrency=2 tolerate=50% cancel merge=n=sum -> success=each failure=flo.Failed\n \
     each: foreach items=\"$.steps.start.output\" concurrency=1 -> success=flo.Completed failure=start\n \
     branch start-item of start list\n ask: wait go timeout=90 set=n=$.index.start\n \
     call: run @a input=\"$.item.start\" retry(2 constant 30) undo(@c) -> stop=Stopped\n \
     branch each-item of each list\n body: block retry(2 constant 0)\n \
     branch body-block of body list\n again: run @b input=\"$.item.each\" set=last=$.result\n \
     inner: foreach items=[1,2] collect=none\n \
     branch inner-item of inner single\n inner-item: run @workflow/leaf",
    "define strict 1 idempotency=required\n start: timer ms=40 -> success=ask\n \
     ask: wait go -> success=flo.Completed",
    "define planned 1 retention=300\n lock ^2$\n plan pay health-weighted health(5000 900000 2) \
     cache(600 {input.n} on=refunded) errors(fatal=fraud)\n \
     executor pay one @a priority=2 retry(2 constant 50) breaker(2 60 1) async(500)\n \
     executor pay two @b breaker(1 60 2) rate(second=2)\n \
     start: run @plan/pay check={} timeouts(attempt=120 total=300) retry(2 constant 30) poll(1 constant 20) \
     -> success=flo.Completed failure=flo.Failed pending=flo.Failed",
    "define turns 1\n plan pay round-robin fallback({\"spare\":1})\n \
     executor pay one @missing\n \
     executor pay two @c breaker(1 50 1) async(300)\n \
     executor pay three @b rate(minute=2)\n \
     start: run @plan/pay -> success=flo.Completed exhausted=flo.Failed",
    "define fanned 1 retention=300 state={\"n\":1} output=\"$.state\" check={}\n terminal Stopped failed\n \
     start: parallel timeout=220 undoes -> success=which failure=flo.Failed\n \
     which: switch $.input.n>2?start $.steps.left.outcome==lost?never default=Stopped -> failure=never\n \
     never: run @a skip=$.steps.which.outcome==failure -> success=flo.Completed\n \
     branch quick of start single\n quick: run @a extract={\"got\":\"$.result\"} check={} set=quick=$.result retry(2 constant 100) undo(@b)\n \
     branch deep of start list output={\"got\":\"$.steps.left.output\"}\n \
     before: wait go timeout=200 set=got=$.result;seen=$.state.left\n inner: parallel -> failure=after\n \
     after: run @workflow/leaf input=\"$.steps.right.output\" -> stop=Stopped\n \
     branch left of inner graph\n left: run @b -> success=again failure=flo.End.lost\n \
     again: wait go timeout=50 set=left=$.state -> success=flo.Completed\n \
     branch right of inner single\n right: run @missing",
    "define timed 1 retention=200\n schedule every 100 max=2\n concurrency [2] on-limit=reject\n start: run @a -> success=flo.Completed",
    "define blank 1 retention=100\n start: set -> success=flo.Completed",
];
