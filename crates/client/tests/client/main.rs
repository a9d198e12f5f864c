//! The client and the worker against nodes whose answers the test gives.

mod calls;
mod fake;
mod watch;
mod worker;
