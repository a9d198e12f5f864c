//! One attempt: a single run of the program.

use super::captured;
use super::process_group::ProcessGroup;
use super::program::Program;
use super::result_files::ResultFiles;
use super::task::Task;
use super::verdict::{self, Ended};
use flotilla_client::{ActionResult, HandlerError};
use std::io;
use std::process::Stdio;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin};

/// Runs the program with the task's input and interprets how it ended.
///
/// When the program has ended, the rest of its process group is killed. Dropping the future kills
/// the whole group.
///
/// # Errors
/// How the task failed (A5).
pub(super) async fn run(program: &Program, task: &Task) -> Result<ActionResult, HandlerError> {
    let ended = execute(program, task).await.map_err(|error| {
        let message = format!("expected to run {}, but {error}", program.name());
        HandlerError::retry(message).with_code("program_not_run")
    })?;
    verdict::of(ended)
}

async fn execute(program: &Program, task: &Task) -> io::Result<Ended> {
    let files = ResultFiles::create()?;
    let mut command = program.command();
    task.set_variables(&mut command, &files);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let (mut group, mut child) = ProcessGroup::spawn(&mut command)?;

    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
        return Err(io::Error::other("its pipes are missing"));
    };
    let whole_output = async {
        let output = captured::output(stdout).await?;
        // The output is already too large and its rest is not read, so the program need not
        // continue.
        if output.is_none() {
            return Err(Stopped::TooMuchOutput);
        }
        Ok(output)
    };
    let work = async {
        tokio::try_join!(
            async {
                feed(stdin, &task.input).await;
                Ok(())
            },
            async { Ok(wait(&mut child, &mut group).await?) },
            whole_output,
            async { Ok(captured::last_line(stderr, tokio::io::stderr()).await?) },
        )
    };
    match work.await {
        Ok(((), status, output, last_line)) => Ok(Ended::ByItself {
            status,
            output: output.unwrap_or_default(),
            last_line,
            written: files.read().await?,
        }),
        Err(Stopped::TooMuchOutput) => Ok(Ended::TooMuchOutput),
        Err(Stopped::Io(error)) => Err(error),
    }
}

/// Why an attempt ends before its program does.
enum Stopped {
    TooMuchOutput,
    Io(io::Error),
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Writes the input. The program need not read it.
pub(super) async fn feed(mut stdin: ChildStdin, input: &[u8]) {
    if stdin.write_all(input).await.is_ok() {
        let _ = stdin.shutdown().await;
    }
}

/// Waits for the program's end, then kills what it left running, which holds the pipes open.
pub(super) async fn wait(
    child: &mut Child,
    group: &mut ProcessGroup,
) -> io::Result<std::process::ExitStatus> {
    let status = child.wait().await?;
    group.kill();
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_client::FailKind;
    use std::path::Path;
    use std::time::Duration;
    use tokio::task::spawn_blocking;

    async fn run_shell(command: &str) -> Result<ActionResult, HandlerError> {
        let task = Task {
            input: r#"{"amount":5}"#.into(),
            run_id: "wfrun-1".to_owned(),
            action: "charge".to_owned(),
            attempt: 2,
            task_id: "t-1".to_owned(),
            task_token: "token".to_owned(),
            report_url: "http://h:1/t".to_owned(),
            traceparent: Some("00-1-2-01".to_owned()),
        };
        run(&Program::from_shell(command), &task).await
    }

    fn text(result: &ActionResult) -> &str {
        let output = result.output().expect("an outcome with its output");
        std::str::from_utf8(output).expect("JSON")
    }

    async fn expect_result(command: &str, outcome: &str, output: &str) {
        let result = run_shell(command).await.expect(command);
        assert_eq!(result.outcome(), Some(outcome), "{command}");
        assert_eq!(text(&result), output, "{command}");
    }

    async fn expect_error(command: &str, kind: FailKind, code: &str, message: &str) {
        let error = run_shell(command).await.expect_err(command);
        assert_eq!(error.kind, kind, "{command}: {}", error.message);
        assert_eq!(error.code, code, "{command}");
        assert!(
            error.message.contains(message),
            "{command}: {}",
            error.message
        );
    }

    #[tokio::test]
    async fn input_comes_on_stdin_and_output_goes_to_stdout() {
        expect_result("cat", "success", r#"{"amount":5}"#).await;
        expect_result("echo ' [1, 2] '", "success", "[1, 2]").await;
    }

    #[tokio::test]
    async fn output_that_is_not_json_becomes_a_string() {
        expect_result("echo done", "success", r#""done""#).await;
        expect_result("printf 'a\\n\"b\"\\n'", "success", r#""a\n\"b\"""#).await;
        expect_result("true", "success", r#""""#).await;
        let bytes = "printf '\\377'";
        expect_error(bytes, FailKind::NoRetry, "output_not_utf8", "UTF-8").await;
    }

    #[tokio::test]
    async fn the_exit_code_decides() {
        expect_result("echo 1; exit 75", "pending", "1").await;
        expect_error("echo no >&2; exit 65", FailKind::NonRetryable, "", "no").await;
        expect_error("echo no >&2; exit 1", FailKind::Retry, "", "no").await;
        expect_error("exit 3", FailKind::Retry, "", "exit code 3").await;
        expect_error("kill -9 $$", FailKind::Retry, "", "signal 9").await;
    }

    #[tokio::test]
    async fn the_last_line_of_stderr_is_the_message() {
        let command = "printf 'first\\ncard refused\\n\\n' >&2; echo out; exit 2";
        expect_error(command, FailKind::Retry, "", "card refused").await;
    }

    #[tokio::test]
    async fn the_files_hold_a_state_patch_a_usage_and_a_delay() {
        let write = r#"echo '{"tries": 1}' > $FLO_STATE_PATCH; echo 5m > $FLO_DELAY_FILE; echo '{"tokens": 7}' > $FLO_USAGE;"#;
        let result = run_shell(&format!("{write} exit 75"))
            .await
            .expect("pending");
        assert_eq!(result.state_patch(), Some(&r#"{"tries": 1}"#.into()));
        assert_eq!(result.delay(), Some(Duration::from_mins(5)));
        assert_eq!(result.usage(), Some(&r#"{"tokens": 7}"#.into()));
        let error = run_shell(&format!("{write} exit 1")).await;
        let error = error.expect_err("failed");
        assert_eq!(error.state_patch, r#"{"tries": 1}"#);
        assert_eq!(error.delay, Some(Duration::from_mins(5)));
        assert_eq!(*error.usage, *br#"{"tokens": 7}"#);
        let result = run_shell("rm $FLO_STATE_PATCH").await.expect("success");
        assert_eq!((result.state_patch(), result.delay()), (None, None));
    }

    #[tokio::test]
    async fn files_that_cannot_be_used_fail_the_attempt() {
        let patch = "echo tries=1 > $FLO_STATE_PATCH";
        expect_error(patch, FailKind::Retry, "bad_state", "FLO_STATE_PATCH").await;
        let usage = r#"echo '{"tokens": "seven"}' > $FLO_USAGE"#;
        expect_error(usage, FailKind::NoRetry, "usage_invalid", "FLO_USAGE").await;
        let large = r#"printf '{"a":"%0300000d"}' 1 > $FLO_STATE_PATCH"#;
        expect_error(large, FailKind::Retry, "bad_state", "256 KiB").await;
        let failed = format!("{patch}; echo no >&2; exit 65");
        expect_error(&failed, FailKind::NonRetryable, "", "no").await;
        let accepted = run_shell(&format!("{patch}; exit 76")).await;
        assert!(accepted.expect("accepted").is_accepted());
        let delay = "echo soon > $FLO_DELAY_FILE";
        expect_error(delay, FailKind::NoRetry, "delay_invalid", "FLO_DELAY_FILE").await;
    }

    #[tokio::test]
    async fn the_output_of_an_accepted_task_is_ignored() {
        let result = run_shell("echo 1; exit 76").await.expect("accepted");
        assert!(result.is_accepted());
        assert_eq!(result.output(), None);
    }

    #[tokio::test]
    async fn a_named_outcome_is_written_to_its_file() {
        expect_result("echo approved > $FLO_OUTCOME_FILE; echo 1", "approved", "1").await;
        let replaced = "echo late > $FLO_OUTCOME_FILE.x; mv $FLO_OUTCOME_FILE.x $FLO_OUTCOME_FILE";
        expect_result(replaced, "late", r#""""#).await;
        expect_result("rm $FLO_OUTCOME_FILE; echo 1", "success", "1").await;
        let failed = "echo approved > $FLO_OUTCOME_FILE; exit 1";
        expect_error(failed, FailKind::Retry, "", "exit code 1").await;
    }

    #[tokio::test]
    async fn the_environment_names_the_task() {
        let command = "echo $FLO_RUN_ID $FLO_ACTION $FLO_ATTEMPT $FLO_TASK_ID $FLO_TASK_TOKEN \
                       $FLO_REPORT_URL $TRACEPARENT";
        let expected = r#""wfrun-1 charge 2 t-1 token http://h:1/t 00-1-2-01""#;
        expect_result(command, "success", expected).await;
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_may_come_back() {
        let words = vec!["/no/such/program".into()];
        let program = Program::from_words(words).expect("one word");
        let error = run(&program, &Task::default()).await.expect_err("missing");
        assert_eq!(error.kind, FailKind::Retry);
        assert_eq!(error.code, "program_not_run");
        assert!(
            error.message.contains("/no/such/program"),
            "{}",
            error.message
        );
    }

    #[tokio::test]
    async fn a_program_need_not_read_a_large_input() {
        let task = Task {
            input: vec![b' '; 1 << 20].into(),
            ..Task::default()
        };
        let result = run(&Program::from_shell("exec <&-; echo 1"), &task).await;
        assert_eq!(text(&result.expect("success")), "1");
    }

    #[tokio::test]
    async fn too_much_output_is_a_failure_and_ends_the_program() {
        expect_error(
            "yes",
            FailKind::NoRetry,
            "output_too_large",
            "1048576 bytes",
        )
        .await;
    }

    #[tokio::test]
    async fn what_a_program_leaves_running_ends_with_it() {
        // The pipe of stdout stays open as long as the other process lives.
        expect_result("sleep 3600 & echo 1", "success", "1").await;
    }

    #[tokio::test]
    async fn giving_up_an_attempt_kills_the_whole_group() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let fifo = folder.path().join("alive");
        make_fifo(&fifo).await;
        let command = format!("exec 3> {}; echo up >&3; sleep 3600 & wait", fifo.display());
        let attempt = tokio::spawn(async move { run_shell(&command).await });
        let mut alive = spawn_blocking(move || std::fs::File::open(fifo))
            .await
            .expect("no panic")
            .expect("the program opened the other end");

        let (mut alive, up) = spawn_blocking(move || {
            let mut up = [0; 3];
            io::Read::read_exact(&mut alive, &mut up).map(|()| (alive, up))
        })
        .await
        .expect("no panic")
        .expect("the program says that it is up");
        assert_eq!(&up, b"up\n");
        attempt.abort();

        // The end of the pipe comes when the last process that holds it is gone.
        let rest = spawn_blocking(move || io::Read::read(&mut alive, &mut [0; 1]));
        assert_eq!(rest.await.expect("no panic").expect("the pipe's end"), 0);
    }

    async fn make_fifo(path: &Path) {
        let made = tokio::process::Command::new("mkfifo")
            .arg(path)
            .status()
            .await;
        assert!(made.expect("mkfifo runs").success());
    }
}
