//! A machine with a member of the cluster: its process comes and goes, its disk and clocks stay.

mod dispatch;
mod drivers;
mod gateway;
mod hub;
mod machine;
mod pump;
mod schedules;
mod term;
mod timers;

pub(crate) use gateway::{Gateway, Polled, Submitted};
pub(crate) use machine::{Machine, MachineContext, simulated_runtime};
