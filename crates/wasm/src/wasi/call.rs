//! One run of a WASI command (A8).

use super::process::EndedProcess;
use super::{Exit, Process};
use crate::abi::preview1::START;
use crate::error::{Failure, InvocationError};
use crate::guest::{self, Guest};
use crate::outcome::OutcomeName;
use crate::sandbox::{Answer, Invocation, Report};
use wasmtime::{InstancePre, Store};

/// The exit status of success; also that of a program that returns.
const SUCCESS: u32 = 0;
/// The exit status "retry later", as `EX_TEMPFAIL` of sysexits.
const PENDING: u32 = 75;

/// Runs a command once, in a fresh instance.
pub(crate) fn run(module: &InstancePre<Guest<Process>>, invocation: Invocation<'_>) -> Report {
    let limits = &invocation.limits;
    let process = Process::new(&invocation.task, invocation.input, limits);
    let mut store = guest::open(module, process, limits);
    let ended = start(module, &mut store, limits.timeout_ms());
    let Guest {
        mut logs, state, ..
    } = store.into_data();
    let EndedProcess {
        output,
        last_line,
        denied,
        requests,
    } = state.end(&mut logs);
    let result = match ended {
        Ok(SUCCESS) => Ok(OutcomeName::SUCCESS),
        Ok(PENDING) => Ok(OutcomeName::PENDING),
        Ok(status) => Err(Failure::Exited {
            status,
            last_line,
            denied,
        }
        .into()),
        Err(error) => Err(with_last_line(error, last_line)),
    };
    Report {
        result: result.map(|outcome| Answer { outcome, output }),
        requests,
        logs,
    }
}

/// The exit status, if the command ended normally.
fn start(
    module: &InstancePre<Guest<Process>>,
    store: &mut Store<Guest<Process>>,
    timeout_ms: u64,
) -> Result<u32, InvocationError> {
    let ended = module.instantiate(&mut *store).and_then(|instance| {
        let start = instance.get_typed_func::<(), ()>(&mut *store, START)?;
        start.call(&mut *store, ())
    });
    match ended {
        Ok(()) => Ok(SUCCESS),
        Err(error) => match error.downcast_ref() {
            Some(&Exit(status)) => Ok(status),
            None => Err(InvocationError::from_engine(&error, timeout_ms)),
        },
    }
}

/// A program that aborts with a trap explains why on stderr: the trap itself is always
/// "unreachable".
fn with_last_line(error: InvocationError, last_line: Option<String>) -> InvocationError {
    match (error, last_line) {
        (InvocationError::Failed(Failure::Trapped { reason }), Some(line)) => Failure::Trapped {
            reason: format!("{reason}, after the last line of stderr: {line}"),
        }
        .into(),
        (error, _) => error,
    }
}
