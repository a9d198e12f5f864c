//! `flo compile-module`: tries to compile a WASM module within bounds of processor time and memory, for the node that
//! starts it (A9, ADR 0038). It is not a command for people, and so not among the [`commands`](crate::commands).

use flotilla_server::ModuleCompiler;
use flotilla_wasm::{Broken, COMPILE_CPU_SECONDS_MAX, try_compile};
use nix::sys::resource::{Resource, setrlimit};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::process::ExitCode;

/// The argument with which a node starts the compiler. The next argument is the memory that it may use, in bytes.
const ARGUMENT: &str = "compile-module";
/// The exit code of a module that cannot be compiled; stdout says why.
const REFUSED: u8 = 1;
/// The exit code if that could not be found out.
const FAILED: u8 = 2;
/// By how much its priority is lower than that of the node.
const NICE: i32 = 10;
/// The process's memory if the system does not say how much that is. In bytes.
const OWN_BYTES_DEFAULT: u64 = 1 << 30;

/// How a node starts it: this very program, even if its file was replaced meanwhile.
pub(crate) fn of_this_program() -> ModuleCompiler {
    let program = if cfg!(target_os = "linux") {
        "/proc/self/exe".into()
    } else {
        env::current_exe().unwrap_or_else(|_| "flo".into())
    };
    ModuleCompiler {
        program,
        arguments: vec![ARGUMENT.into()],
    }
}

/// The memory that the compiler may use, in bytes; `None` if the command line does not call it.
pub(crate) fn called() -> Option<u64> {
    called_by(env::args_os().skip(1))
}

fn called_by(mut arguments: impl Iterator<Item = OsString>) -> Option<u64> {
    if arguments.next()? != ARGUMENT {
        return None;
    }
    let bytes = arguments.next()?.to_str()?.parse().ok()?;
    arguments.next().is_none().then_some(bytes)
}

/// Compiles the module on stdin with `memory_bytes` bytes of memory. Past a limit, the system ends the process by a signal.
pub(crate) fn run(memory_bytes: u64) -> ExitCode {
    let tried = limit_itself(memory_bytes).and_then(|()| read_module());
    let said = match tried.map(|module| try_compile(&module)) {
        Ok(Ok(code_bytes)) => (code_bytes.to_string(), ExitCode::SUCCESS),
        Ok(Err(Broken::Compile { reason })) => (reason, ExitCode::from(REFUSED)),
        Ok(Err(broken)) => (broken.to_string(), ExitCode::from(REFUSED)),
        Err(error) => (error.to_string(), ExitCode::from(FAILED)),
    };
    match io::stdout().write_all(said.0.as_bytes()) {
        Ok(()) => said.1,
        Err(_) => ExitCode::from(FAILED),
    }
}

fn read_module() -> io::Result<Vec<u8>> {
    let mut module = Vec::new();
    io::stdin().lock().read_to_end(&mut module)?;
    Ok(module)
}

/// Limits what the process may take from now on, beside the memory of the program itself.
fn limit_itself(memory_bytes: u64) -> io::Result<()> {
    let seconds = COMPILE_CPU_SECONDS_MAX;
    // At the second limit the signal cannot be caught.
    setrlimit(Resource::RLIMIT_CPU, seconds, seconds + 1)?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    let bytes = own_bytes().saturating_add(memory_bytes);
    setrlimit(Resource::RLIMIT_AS, bytes, bytes)?;
    // Neither is needed: both are for the benefit of the rest of the machine.
    let _ = rustix::process::nice(NICE);
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    Ok(())
}

/// The address space that the process has taken so far. In bytes.
fn own_bytes() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    let page_bytes = rustix::param::page_size() as u64;
    pages.map_or(OWN_BYTES_DEFAULT, |pages| pages * page_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_calls_it_with_the_memory_that_it_may_take() {
        let called = |arguments: &[&str]| called_by(arguments.iter().map(OsString::from));
        assert_eq!(called(&["compile-module", "134217728"]), Some(128 << 20));
        for other in [
            &[][..],
            &["server"],
            &["compile-module"],
            &["compile-module", "much"],
            &["compile-module", "1", "2"],
        ] {
            assert_eq!(called(other), None, "{other:?}");
        }
    }
}
