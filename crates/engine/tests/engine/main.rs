//! The engine's tests: scripts that show whole traces, properties over random histories, and the
//! bytes that a released version must read for ever.

mod golden;
mod invariants;
mod property;
mod samples;
mod script;
mod tables;
mod testdata;
mod texts;
