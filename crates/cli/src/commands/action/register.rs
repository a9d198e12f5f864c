//! `flo action register`.

use crate::code::Code;
use crate::failure::Failure;
use crate::file;
use crate::session::Session;
use crate::views::ActionView;
use bytes::Bytes;
use clap::Args;
use flotilla_client::v1::{ActionType, RegisterActionRequest};
use std::fs;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  flo action register charge --timeout-ms 5000 --max-retries 5
  flo action register ship --wasm ship.wasm
  flo action register resize --wasm resize.wasm --max-memory-bytes 134217728";

/// Register an action, or replace all fields of an existing one
///
/// With --wasm, the nodes run the action in a sandbox; without it, workers do.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Register {
    /// Name of the action
    name: String,

    /// WebAssembly module that implements the action: a .wasm file, or .wat text
    #[arg(long, value_name = "FILE")]
    wasm: Option<PathBuf>,

    /// Memory limit of the module in bytes, at most 268435456 [default: 16777216]
    #[arg(long, value_name = "N", requires = "wasm")]
    max_memory_bytes: Option<u64>,

    /// Output limit in bytes, at most 4194304 [default: 1048576]
    #[arg(long, value_name = "N", requires = "wasm")]
    max_output_bytes: Option<u64>,

    /// Lease in milliseconds; a task that is not touched for this long goes to another worker
    /// [default: 30000]
    #[arg(long, value_name = "N")]
    timeout_ms: Option<u64>,

    /// Retries after the first attempt [default: 3]
    #[arg(long, value_name = "N")]
    max_retries: Option<u32>,

    /// Delay in milliseconds before the first retry, doubled for each further one [default: 1000]
    #[arg(long, value_name = "N")]
    retry_delay_ms: Option<u64>,

    /// Description for people
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    description: String,
}

impl Register {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let (action_type, wasm_module) = match &self.wasm {
            Some(path) => (ActionType::Wasm, read_module(path)?),
            None => (ActionType::User, Bytes::new()),
        };
        let request = RegisterActionRequest {
            name: self.name,
            r#type: action_type.into(),
            wasm_module,
            max_memory_bytes: self.max_memory_bytes,
            max_output_bytes: self.max_output_bytes,
            timeout_ms: self.timeout_ms,
            max_retries: self.max_retries,
            retry_delay_ms: self.retry_delay_ms,
            description: self.description,
            ..RegisterActionRequest::default()
        };
        let response = session.client()?.register_action(request).await?;
        let view = ActionView::from(response.action.unwrap_or_default());
        let done = if response.changed {
            "registered"
        } else {
            "unchanged"
        };
        session
            .output
            .value(&view, |view| format!("{} {done}", view.title()))
    }
}

fn read_module(path: &Path) -> Result<Bytes, Failure> {
    let name = path.display().to_string();
    let bytes =
        fs::read(path).map_err(|error| file::unreadable(Code::FileUnreadable, &name, &error))?;
    let module = flotilla_wasm::to_binary(&bytes)
        .map_err(|error| Failure::new(Code::ModuleMalformed, format!("{name}: {error}")))?;
    Ok(module.into_owned().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn module(bytes: &[u8]) -> Result<Bytes, Failure> {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(bytes).expect("room for a module");
        read_module(file.path())
    }

    #[test]
    fn text_is_sent_as_a_binary_module() {
        let binary = module(b"(module)").expect("text");
        assert_eq!(&binary[..4], b"\0asm");
        assert_eq!(module(&binary), Ok(binary));
    }

    #[test]
    fn a_file_that_is_not_a_module_is_bad_input() {
        let failure = module(b"(module (func").expect_err("half of a module");
        assert_eq!(failure.code(), "module_malformed");
        let failure = read_module(Path::new("no/such/file")).expect_err("missing");
        assert_eq!(failure.code(), "file_unreadable");
    }
}
