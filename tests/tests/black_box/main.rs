//! Flotilla from outside: real processes of `flo`, the command line, the public protocol.

mod bad_input;
mod calls;
mod crash;
mod dead_letters;
mod examples;
mod files;
mod first_minutes;
mod formats;
mod history;
mod keys;
mod logs;
mod manual;
mod membership;
mod module_keys;
mod namespaces;
mod notes;
mod plans;
mod queries;
mod schedules;
mod snapshot;
mod streams;
mod tally;
mod triggers;
mod wire;
mod workers;
