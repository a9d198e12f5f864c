//! Runs of three steps, each a task of a worker.

use crate::recorder::Recorder;
use crate::recording::Recording;
use crate::requests;
use flotilla_engine::ids::{ActionName, Namespace, OutcomeName, RunId, WorkerId, WorkflowName};
use flotilla_engine::rows::{Process, ProcessKind, WorkerType};
use flotilla_engine::{
    Applied, Body, Command, CompleteTask, Effect, Offer, RegisterWorker, Reply, SweepRuns,
    TaskToken, reply, view,
};
use std::collections::BTreeMap;

const STEPS: &str = "
kind: Workflow
name: three-steps
version: '1'
retention_ms: 3600000
start:
  run: '@actions/first'
  transitions: {success: second, failure: flo.Failed}
steps:
  second:
    run: '@actions/second'
    transitions: {success: third, failure: flo.Failed}
  third:
    run: '@actions/third'
    transitions: {success: flo.Completed, failure: flo.Failed}
";
const RETENTION_MS: u64 = 3_600_000;

/// How the commands of clients are ordered.
const STAGES: [&str; 4] = ["start", "first", "second", "third"];
const ACTIONS: [&str; 3] = ["first", "second", "third"];
const WORKERS: [&str; 2] = ["w1", "w2"];

/// As many clients as commands per entry, a quarter of them at each stage.
pub(crate) fn mixed(runs: usize, entry_commands: usize) -> Recording {
    let mut load = Load::new(runs, entry_commands);
    load.clients = (0..entry_commands)
        .map(|position| Client {
            next: Next::Pause(position % STAGES.len()),
            run_id: None,
        })
        .collect();
    while load.step(|_| "mixed") {}
    load.recorder.expect_completed(runs);
    load.recorder.finish()
}

/// As many clients as commands per entry, all at the same stage.
pub(crate) fn in_turn(runs: usize, entry_commands: usize) -> Recording {
    let recorder = play_in_turn(runs, entry_commands);
    recorder.expect_completed(runs);
    recorder.finish()
}

/// The same, and then the retention of all runs ends.
pub(crate) fn swept(runs: usize, entry_commands: usize) -> Recording {
    let mut recorder = play_in_turn(runs, entry_commands);
    recorder.expect_completed(runs);
    recorder.pass(RETENTION_MS);
    let is_due = |recorder: &Recorder| {
        let expired = view::expired(recorder.rows(), recorder.now_ms());
        expired.expect("memory does not fail").is_due
    };
    while is_due(&recorder) {
        let sweep = requests::command(Body::SweepRuns(SweepRuns {}));
        recorder.apply("sweep", Vec::new(), vec![sweep]);
    }
    recorder.expect_completed(0);
    recorder.finish()
}

fn play_in_turn(runs: usize, entry_commands: usize) -> Recorder {
    let mut load = Load::new(runs, entry_commands);
    while load.step(|entry| STAGES[entry % STAGES.len()]) {}
    load.recorder
}

/// Clients that each execute one run after the other, and the workers that serve them.
struct Load {
    recorder: Recorder,
    clients: Vec<Client>,
    workflow: WorkflowName,
    offers: Vec<Offer>,
    runs_left: usize,
    entries: usize,
}

struct Client {
    next: Next,
    run_id: Option<RunId>,
}

enum Next {
    /// Starts only after this many entries.
    Pause(usize),
    Start,
    Complete(TaskToken),
    Nothing,
}

impl Load {
    /// All clients start at the same time.
    fn new(runs: usize, clients: usize) -> Self {
        let actions: Vec<ActionName> = ACTIONS
            .map(|name| ActionName::new(name).expect("a legal name"))
            .into();
        let workers = WORKERS.map(|id| WorkerId::new(id).expect("a legal id"));
        let mut setup = vec![requests::create(STEPS)];
        setup.extend(actions.iter().map(requests::register_action));
        setup.extend(workers.iter().map(register_worker));
        let slots = u32::try_from(clients).expect("an entry holds fewer commands than that");
        let offers = workers.into_iter().zip(1..).map(|(worker, poll)| Offer {
            namespace: Namespace::default_namespace(),
            worker,
            poll,
            actions: actions.clone(),
            labels: BTreeMap::new(),
            slots,
        });
        Self {
            recorder: Recorder::begin(setup),
            clients: (0..clients)
                .map(|_| Client {
                    next: Next::Start,
                    run_id: None,
                })
                .collect(),
            workflow: WorkflowName::new("three-steps").expect("a legal name"),
            offers: offers.collect(),
            runs_left: runs,
            entries: 0,
        }
    }

    /// Applies an entry with a command of each client; false if no client has any work left.
    fn step(&mut self, stage: impl FnOnce(usize) -> &'static str) -> bool {
        let mut senders = Vec::new();
        let mut commands = Vec::new();
        let mut is_pausing = false;
        for position in 0..self.clients.len() {
            if let Next::Pause(entries @ 1..) = &mut self.clients[position].next {
                *entries -= 1;
                is_pausing = true;
                continue;
            }
            if let Some(command) = self.next_command(position) {
                commands.push(command);
                senders.push(position);
            }
        }
        if commands.is_empty() {
            return is_pausing;
        }
        let offers = self.offers.clone();
        let applied = self.recorder.apply(stage(self.entries), offers, commands);
        self.entries += 1;
        self.follow(&senders, &applied);
        true
    }

    fn next_command(&mut self, position: usize) -> Option<Command> {
        let client = &mut self.clients[position];
        match std::mem::replace(&mut client.next, Next::Nothing) {
            Next::Complete(token) => Some(requests::command(complete(token))),
            Next::Pause(_) | Next::Start if self.runs_left > 0 => {
                self.runs_left -= 1;
                Some(self.recorder.sent(requests::start(&self.workflow)))
            }
            Next::Pause(_) | Next::Start | Next::Nothing => None,
        }
    }

    /// A client continues with the task that was delivered for its run; without a task, the run is over.
    fn follow(&mut self, senders: &[usize], applied: &Applied) {
        let mut delivered = delivered(applied);
        for (position, reply) in senders.iter().zip(&applied.replies) {
            let client = &mut self.clients[*position];
            if let Ok(Reply::RunStarted(reply::RunStarted { run_id, .. })) = reply {
                client.run_id = Some(run_id.clone());
            }
            let run_id = client.run_id.as_ref();
            let run_id = run_id.expect("a client begins with a start");
            client.next = delivered.remove(run_id).map_or(Next::Start, Next::Complete);
        }
        assert!(delivered.is_empty(), "a task is its client's to complete");
    }
}

fn register_worker(worker_id: &WorkerId) -> Body {
    let process = |name: &str| Process {
        name: name.to_owned(),
        kind: ProcessKind::Action,
    };
    Body::RegisterWorker(Box::new(RegisterWorker {
        worker_id: worker_id.clone(),
        incarnation: 1,
        kind: WorkerType::Action,
        max_concurrency: 1_000,
        processes: ACTIONS.map(process).into(),
        labels: BTreeMap::new(),
        metadata: None,
        machine_id: None,
        node: None,
    }))
}

fn complete(token: TaskToken) -> Body {
    Body::CompleteTask(CompleteTask {
        token,
        outcome: OutcomeName::new("success").expect("a legal outcome"),
        output: requests::payload(),
        not_before: None,
        state_patch: None,
        usage: None,
    })
}

/// The tasks that an entry assigned to workers, by run.
fn delivered(applied: &Applied) -> BTreeMap<RunId, TaskToken> {
    let mut delivered = BTreeMap::new();
    for effect in &applied.effects {
        if let Effect::DeliverTask { assignment, .. } = effect {
            let run_id = assignment.run_id.clone();
            let run_id = run_id.expect("every task here is a step's");
            delivered.insert(run_id, assignment.token);
        }
    }
    delivered
}
