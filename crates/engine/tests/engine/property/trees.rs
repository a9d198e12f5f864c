//! Random trees of blocks, as workflows.

use proptest::prelude::*;
use std::fmt::Write;
use std::slice;

/// A step of a generated workflow.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Waits for a signal; ends with `success`.
    Waits,
    /// Asks for a decision; ends with `approved`.
    Asks,
    /// Ends immediately with `target_not_found`.
    Fails,
    /// Is skipped.
    Skips,
    /// Writes a key that no other step writes to the state, and 1 to `n`, which joins add up.
    Sets,
    /// Appends a record to the stream `log`.
    Emits,
    /// Is a switch without a match, and leads to the next step.
    LeadsOn,
    /// Is a switch that ends the block with `success`.
    Ends,
    /// Is a switch that ends the block with `failure`, so that a block step retries it.
    Breaks,
    /// Ends as its branches do, by the join.
    Fans(&'static str, Vec<Vec<Step>>),
    /// Ends as its block does; the block has at most two attempts.
    Nests(Vec<Step>),
    /// Executes its block for two items, with this concurrency.
    Loops(u32, Vec<Step>),
    /// Executes its block for two items at the same time, and succeeds even if both iterations fail.
    Tolerates(Vec<Step>),
    /// Makes a task, which a worker takes and reports on later.
    Acts,
    /// Starts a child run that waits for a signal, and waits for it to end.
    Calls,
    /// Waits for a time that has passed by the next entry.
    Delays,
}

impl Step {
    /// Its branches, or its block.
    pub(super) fn blocks(&self) -> &[List] {
        match self {
            Self::Fans(_, branches) => branches,
            Self::Nests(list) | Self::Loops(_, list) | Self::Tolerates(list) => {
                slice::from_ref(list)
            }
            _ => &[],
        }
    }
}

/// The steps of a list.
pub(super) type List = Vec<Step>;

/// Lists of up to three steps, with up to three levels of branches.
pub(super) fn lists(joins: &'static [&'static str]) -> impl Strategy<Value = List> {
    weighted_lists(joins, 3)
}

/// Like [`lists`], but with this weight for tasks. The weights of the other steps without blocks add up to 21.
pub(super) fn weighted_lists(
    joins: &'static [&'static str],
    tasks_weight: u32,
) -> impl Strategy<Value = List> {
    let leaf = prop_oneof![
        6 => Just(Step::Waits),
        3 => Just(Step::Asks),
        2 => Just(Step::Calls),
        tasks_weight => Just(Step::Acts),
        1 => Just(Step::Delays),
        2 => Just(Step::Fails),
        1 => Just(Step::Skips),
        2 => Just(Step::Sets),
        1 => Just(Step::Emits),
        1 => Just(Step::LeadsOn),
        1 => Just(Step::Ends),
        1 => Just(Step::Breaks),
    ];
    let step = leaf.prop_recursive(3, 40, 3, move |inner| {
        let block = prop::collection::vec(inner, 1..3);
        let branches = prop::collection::vec(block.clone(), 1..4);
        let fans = (prop::sample::select(joins), branches);
        prop_oneof![
            3 => fans.prop_map(|(join, branches)| Step::Fans(join, branches)),
            1 => block.clone().prop_map(Step::Nests),
            1 => (1..3_u32, block.clone())
                .prop_map(|(concurrency, list)| Step::Loops(concurrency, list)),
            1 => block.prop_map(Step::Tolerates),
        ]
    });
    prop::collection::vec(step, 1..4)
}

/// The root block of a workflow with handlers.
pub(super) const ROOT_BLOCK: &str = "define tree 1 on-error=onError on-cancel=onCancel
 start: block -> success=flo.Completed failure=flo.Failed timeout=flo.TimedOut cancelled=flo.Cancelled
 onError: block
 onCancel: block
";

/// A step that is always skipped, because the workflow is named `tree`.
const SKIPPED: &str = "wait go skip=$.flo.workflow==tree";

/// Options appended to the line of a step, by the kind of step.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) task: &'static str,
    pub(super) child: &'static str,
    pub(super) wait: &'static str,
    pub(super) blocks: &'static str,
}

impl Settings {
    fn of(&self, step: &Step) -> &'static str {
        match step {
            Step::Acts => self.task,
            Step::Calls => self.child,
            Step::Waits | Step::Asks => self.wait,
            Step::Fans(..) | Step::Nests(_) | Step::Loops(..) | Step::Tolerates(_) => self.blocks,
            Step::Fails
            | Step::Skips
            | Step::Sets
            | Step::Emits
            | Step::LeadsOn
            | Step::Ends
            | Step::Breaks
            | Step::Delays => "",
        }
    }
}

/// A workflow whose root block is a tree, with the settings of its steps.
#[derive(Clone, Debug)]
pub(super) struct ConfiguredTree {
    /// The lines of the root block, in which the steps `start`, `onError` and `onCancel` open the lists.
    pub(super) root_block: &'static str,
    pub(super) list: List,
    /// The blocks of its handlers.
    pub(super) on_error: List,
    pub(super) on_cancel: List,
    /// Assigned to the steps in turn, from the start again when they run out.
    pub(super) settings: Vec<Settings>,
}

/// The text of a workflow, as the scripts write it.
pub(super) struct Text<'t> {
    root_block: String,
    blocks: String,
    names_count: usize,
    /// How many steps that are skipped come before each step.
    skipped_count: usize,
    settings: &'t [Settings],
}

impl<'t> Text<'t> {
    pub(super) fn of(list: &List) -> String {
        Self::of_version(list, 1, 0)
    }

    /// The text of another version, in which steps that are skipped come before each step.
    pub(super) fn of_version(list: &List, version: usize, skipped_count: usize) -> String {
        let mut text = Self {
            root_block: format!("define tree {version} list\n"),
            blocks: String::new(),
            names_count: 0,
            skipped_count,
            settings: &[],
        };
        text.root_block = text.block(list, text.root_block.clone());
        text.root_block + &text.blocks
    }

    /// The text of a workflow with handlers and settings.
    pub(super) fn of_configured_tree(tree: &'t ConfiguredTree) -> String {
        let mut text = Self {
            root_block: tree.root_block.to_owned(),
            blocks: String::new(),
            names_count: 0,
            skipped_count: 0,
            settings: &tree.settings,
        };
        let blocks = [
            ("start", &tree.list),
            ("onError", &tree.on_error),
            ("onCancel", &tree.on_cancel),
        ];
        for (opener, list) in blocks {
            let lines = text.block(list, format!(" branch {opener}-block of {opener} list\n"));
            text.root_block.push_str(&lines);
        }
        text.root_block + &text.blocks
    }

    /// Appends the lines of a list to `lines`, and the blocks of its steps to `self.blocks`.
    fn block(&mut self, list: &List, mut lines: String) -> String {
        for step in list {
            self.names_count += 1;
            let name = format!("s{}", self.names_count);
            let set = format!("set set={name}=1;n=1");
            let what = match step {
                Step::Waits => "wait go",
                Step::Asks => "approval",
                Step::Fails => "run @unknown",
                Step::Sets => &set,
                Step::Emits => "emit log payload=1",
                Step::Skips => SKIPPED,
                Step::LeadsOn => "switch $.flo.workflow!=tree?flo.Failed",
                Step::Ends => "switch $.flo.workflow==tree?flo.Completed",
                Step::Breaks => "switch $.flo.workflow==tree?flo.Failed",
                Step::Fans(join, _) => &format!("{join} merge=n=sum"),
                Step::Nests(_) => "block retry(2 constant 0)",
                Step::Loops(concurrency, _) => {
                    &format!("foreach items=[1,2] concurrency={concurrency} merge=n=sum")
                }
                Step::Tolerates(_) => "foreach items=[1,2] tolerate=2 merge=n=sum",
                Step::Calls => "run @workflow/kid",
                Step::Acts => "run @a",
                Step::Delays => "timer ms=1",
            };
            for number in 0..self.skipped_count {
                writeln!(lines, " {name}x{number}: {SKIPPED}").expect("a string takes any text");
            }
            let mut settings = self.settings.iter().cycle().skip(self.names_count);
            let settings = settings.next().map_or("", |settings| settings.of(step));
            writeln!(lines, " {name}: {what} {settings}").expect("a string takes any text");
            for (position, branch) in step.blocks().iter().enumerate() {
                let head = format!(" branch {name}b{position} of {name} list\n");
                let inner = self.block(branch, head);
                self.blocks.push_str(&inner);
            }
        }
        lines
    }
}

/// The maximum number of waits in a tree.
pub(super) fn waits_count(list: &List) -> usize {
    let of_step = |step: &Step| {
        let inner: usize = step.blocks().iter().map(waits_count).sum();
        match step {
            Step::Waits | Step::Asks | Step::Calls | Step::Delays => 1,
            // A worker takes the task, and reports on it.
            Step::Acts => 2,
            Step::Nests(_) | Step::Loops(..) | Step::Tolerates(_) => 2 * inner,
            _ => inner,
        }
    };
    list.iter().map(of_step).sum()
}

/// Every kind of join.
pub(super) const JOINS: [&str; 7] = [
    "parallel",
    "parallel cancel",
    "parallel join=any",
    "parallel join=first",
    "parallel join=1",
    "parallel join=1 cancel",
    "parallel",
];
