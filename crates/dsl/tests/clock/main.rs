//! Time-driven behavior against a test clock: the engine with the drivers that a leader runs,
//! hours in a moment.

mod schedules;
mod triggers;
mod world;
