//! Compiles a module in a child process, which has limits and can be killed.

use super::verdicts::Verdict;
use crate::config::ModuleCompiler;
use crate::errors::Refusal;
use crate::limits::{TRIAL_DEADLINE, TRIAL_OUTPUT_BYTES_MAX};
use flotilla_wasm::{Broken, check_code_bytes};
use nix::sys::signal::Signal;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// The exit code of a child that has found out why a module cannot be compiled: its output says it.
const REFUSED: i32 = 1;
/// The exit code of a Rust program that has panicked.
const PANICKED: i32 = 101;

/// The trial of a module: a child process compiles it.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    compiler: ModuleCompiler,
    memory_bytes_max: usize,
}

impl Trial {
    /// Trials by this compiler, which may take `memory_bytes_max` bytes of memory.
    pub(crate) fn new(compiler: ModuleCompiler, memory_bytes_max: usize) -> Self {
        Self {
            compiler,
            memory_bytes_max,
        }
    }

    /// Tries a module. If this is dropped, the child is killed.
    ///
    /// # Errors
    /// [`Refusal`] if the node could not find out whether the module can be compiled.
    pub(super) async fn run(&self, module: &[u8]) -> Result<Verdict, Refusal> {
        let child = Command::new(&self.compiler.program)
            .args(&self.compiler.arguments)
            .arg(self.memory_bytes_max.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| failed(format!("its process could not be started: {error}")))?;
        let Ok(ended) = timeout(TRIAL_DEADLINE, talk(child, module)).await else {
            let seconds = TRIAL_DEADLINE.as_secs();
            return Err(failed(format!("it was not finished after {seconds} s")));
        };
        let (status, output) = ended.map_err(|error| failed(error.to_string()))?;
        self.verdict(status, &output)
    }

    /// What the end of a child means.
    fn verdict(&self, status: ExitStatus, output: &str) -> Result<Verdict, Refusal> {
        if status.success() {
            let bytes = output.trim_end().parse();
            let bytes = bytes.map_err(|_| failed(format!("its process said {output:?}")))?;
            return Ok(check_code_bytes(bytes));
        }
        let broken = |reason: &str| {
            Ok(Err(Broken::Compile {
                reason: reason.to_owned(),
            }))
        };
        match status.code() {
            Some(REFUSED) => return broken(output),
            Some(PANICKED) => return broken("the compiler failed"),
            Some(_) | None => {}
        }
        match status.signal().map(Signal::try_from) {
            Some(Ok(Signal::SIGXCPU)) => Ok(Err(Broken::CompileTime)),
            // Without memory, the program aborts.
            Some(Ok(Signal::SIGABRT)) => Ok(Err(Broken::CompileMemory {
                bytes_max: self.memory_bytes_max,
            })),
            Some(Ok(Signal::SIGSEGV | Signal::SIGBUS)) => broken("the compiler crashed"),
            // Among others, killed by the system because the machine has no memory.
            Some(_) | None => Err(failed(format!("its process ended with {status}"))),
        }
    }
}

/// Gives the child the module and waits for its end.
async fn talk(mut child: Child, module: &[u8]) -> std::io::Result<(ExitStatus, String)> {
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let write = async {
        if let Some(mut input) = input {
            // A child that has refused the module, or was killed, does not read it to its end: its status says why.
            let _ = input.write_all(module).await;
        }
    };
    let read = async {
        let mut text = Vec::new();
        if let Some(output) = output {
            output
                .take(TRIAL_OUTPUT_BYTES_MAX)
                .read_to_end(&mut text)
                .await?;
        }
        Ok::<_, std::io::Error>(text)
    };
    let ((), text) = tokio::join!(write, read);
    let text = String::from_utf8_lossy(&text?).into_owned();
    Ok((child.wait().await?, text))
}

fn failed(reason: String) -> Refusal {
    Refusal::unavailable(&format!("expected to compile the module, but {reason}"))
}
