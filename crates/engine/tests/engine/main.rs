//! The engine's tests: scripts that show whole traces, properties over random histories, and the
//! bytes that a released version must read for ever.

mod bounds;
mod corpus;
mod event_types;
mod forgetting;
mod golden;
mod groups;
mod heads;
mod infos;
mod inputs;
mod invalidation;
mod invariants;
mod leases;
mod long_runs;
mod namespaces;
mod plan_cache;
mod property;
mod queues;
mod reads;
mod replica;
mod requests;
mod retention;
mod samples;
mod script;
mod shared_input;
mod signals;
mod signatures;
mod tables;
mod testdata;
mod texts;
mod timers;
mod traces;
mod trimming;
mod versions;
mod workers;
mod workflows;
