//! The client and the worker against nodes whose answers the test gives.

mod calls;
mod fake;
mod running;
mod stream_worker;
mod tls;
mod watch;
mod worker;
