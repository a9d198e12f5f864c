//! `flo` as a client: one call and its JSON.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use crate::flo;

/// Calls `flo` against some nodes.
#[derive(Clone)]
pub(crate) struct Client<'a> {
    binary: &'a Path,
    variables: Variables,
}

/// The environment with which `flo` reaches a cluster: endpoints, certificate authority, client credentials.
pub(crate) type Variables = Vec<(&'static str, String)>;

impl<'a> Client<'a> {
    /// A client of the cluster that these variables name.
    pub(crate) fn new(binary: &'a Path, variables: Variables) -> Self {
        Self { binary, variables }
    }

    /// The single JSON object that the call prints.
    ///
    /// # Errors
    /// If the call failed, with its message, or printed something else.
    pub(crate) fn object(&self, arguments: &[&str]) -> Result<Value> {
        let text = self.call(arguments)?;
        serde_json::from_str(&text).with_context(|| unexpected(arguments, &text))
    }

    /// The JSON objects that the call prints, one per line.
    ///
    /// # Errors
    /// As [`Self::object`].
    pub(crate) fn objects(&self, arguments: &[&str]) -> Result<Vec<Value>> {
        let text = self.call(arguments)?;
        let objects = text.lines().map(serde_json::from_str);
        let objects: serde_json::Result<_> = objects.collect();
        objects.with_context(|| unexpected(arguments, &text))
    }

    /// A call that prints JSON; the caller starts it.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = flo::command(self.binary);
        command
            .envs(self.variables.iter().cloned())
            .args(["--format", "json"])
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    fn call(&self, arguments: &[&str]) -> Result<String> {
        let output = self.command(arguments).output();
        let output = output.context("expected `flo` to start")?;
        if !output.status.success() {
            bail!("`flo {}`: {}", arguments.join(" "), complaint(&output));
        }
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// The text of a field.
///
/// # Errors
/// If the field is missing.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> Result<&'a str> {
    object[field].as_str().ok_or_else(|| missing(object, field))
}

/// The number in a field.
///
/// # Errors
/// If the field is missing.
pub(crate) fn number(object: &Value, field: &str) -> Result<u64> {
    object[field].as_u64().ok_or_else(|| missing(object, field))
}

/// The number in a field, which may have a fraction.
///
/// # Errors
/// If the field is missing.
pub(crate) fn figure(object: &Value, field: &str) -> Result<f64> {
    object[field].as_f64().ok_or_else(|| missing(object, field))
}

/// The list in a field.
///
/// # Errors
/// If the field is missing.
pub(crate) fn list<'a>(object: &'a Value, field: &str) -> Result<&'a [Value]> {
    let list = object[field].as_array();
    list.map(Vec::as_slice)
        .ok_or_else(|| missing(object, field))
}

fn missing(object: &Value, field: &str) -> anyhow::Error {
    anyhow!("expected a field `{field}`, but it is missing in {object}")
}

fn unexpected(arguments: &[&str], text: &str) -> String {
    let call = arguments.join(" ");
    format!("expected JSON from `flo {call}`, but it printed {text:?}")
}

/// The message of `{"error":{"code","message","hint"}}`, or whatever else was printed on stderr.
fn complaint(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let report = stderr.lines().last().map(serde_json::from_str::<Value>);
    let message = report.and_then(Result::ok).and_then(|report| {
        let message = report["error"]["message"].as_str();
        message.map(ToOwned::to_owned)
    });
    message.unwrap_or_else(|| format!("{} with {}", output.status, stderr.trim()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use serde_json::json;

    use super::*;

    fn failed(stderr: &str) -> Output {
        Output {
            status: ExitStatus::from_raw(3 << 8),
            stdout: Vec::new(),
            stderr: stderr.into(),
        }
    }

    #[test]
    fn a_refusal_is_shown_by_its_message() {
        let refusal = r#"{"error":{"code":"run_finished","message":"expected an open run"}}"#;
        assert_eq!(complaint(&failed(refusal)), "expected an open run");
    }

    #[test]
    fn a_crash_is_shown_with_its_status_and_output() {
        assert_eq!(
            complaint(&failed("panicked\n")),
            "exit status: 3 with panicked"
        );
    }

    #[test]
    fn a_field_is_there_with_its_type_or_missed_by_name() {
        let run = json!({"run_id": "wfrun-1", "seq": 4, "items": [1]});
        assert_eq!(text(&run, "run_id").unwrap(), "wfrun-1");
        assert_eq!(number(&run, "seq").unwrap(), 4);
        assert!((figure(&json!({"ms": 0.5}), "ms").unwrap() - 0.5).abs() < 1e-9);
        assert_eq!(list(&run, "items").unwrap().len(), 1);
        let error = text(&run, "seq").unwrap_err().to_string();
        assert!(error.contains("`seq`"), "{error}");
    }
}
