//! A page of documentation as steps: the commands in its code blocks, and the notes for this test
//! in HTML comments.
//!
//! ```text
//!   <!-- before: SHELL COMMANDS -->       run here, unseen by readers: what the page assumes
//!   <!-- not run: REASON -->              the next block does not run
//!   <!-- not run (WORDS): REASON -->      lines of the next block that contain WORDS do not run
//!   <!-- exit code N: REASON -->          the last command of the next block ends so
//!   <!-- stop the server -->              Ctrl-C for the command that was left running
//! ```
//!
//! A reason begins with one of [`REASONS`]. Several notes may precede one block.

use std::fmt::Write;

/// Why a command is not run: the word that begins the reason, and what it stands for.
pub(crate) const REASONS: &[(&str, &str)] = &[
    ("root", "needs root"),
    ("disk", "needs a disk or a mounted storage of the reader's"),
    ("host", "needs another machine"),
    ("window", "needs a screen"),
    ("minutes", "takes too long for a test"),
    ("network", "needs the Internet"),
    ("build", "builds or tests Tenuto"),
    ("part", "has a part that the reader fills in"),
];

/// A page, and what it says to do.
pub(crate) struct Page {
    pub(crate) file: String,
    pub(crate) steps: Vec<Step>,
}

/// A step of a page, with the number of its first line.
pub(crate) struct Step {
    pub(crate) line: usize,
    pub(crate) what: What,
}

/// What a step does.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A command as printed, which ends with this exit code.
    Run { command: String, code: i32 },
    /// Commands that the page assumes.
    Before(String),
    /// A command that this test leaves out, and the reason.
    NotRun { command: String, reason: String },
    /// Ctrl-C for the command that was left running.
    Stop,
}

impl Page {
    pub(crate) fn read(file: &str) -> Self {
        let text = std::fs::read_to_string(super::root().join(file)).expect(file);
        Self {
            file: file.to_owned(),
            steps: steps(&text).unwrap_or_else(|what| panic!("{file}: {what}")),
        }
    }
}

/// Notes that apply to the next block.
#[derive(Default)]
struct Notes {
    /// Words of lines that do not run (empty: all lines), and the reason.
    not_run: Vec<(String, String)>,
    code: i32,
}

fn steps(text: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut notes = Notes::default();
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    while let Some((number, line)) = lines.next() {
        // A block in a list is indented.
        let indent = line.len() - line.trim_start().len();
        let language = line.trim_start().strip_prefix("```");
        if let Some(start) = line.trim().strip_prefix("<!--") {
            let mut comment = start.to_owned();
            while !comment.contains("-->") {
                let (_, more) = lines.next().ok_or("a comment does not end")?;
                let _ = write!(comment, "\n{more}");
            }
            let comment = comment.split("-->").next().unwrap_or_default().trim();
            if let Some(what) =
                note(comment, &mut notes).map_err(|what| format!("line {number}: {what}"))?
            {
                steps.push(Step { line: number, what });
            }
        } else if let Some(language) = language {
            let inside =
                lines.by_ref().take_while(|(_, line)| !line.trim_start().starts_with("```"));
            let body: Vec<_> = inside
                .map(|(number, line)| (number, line.get(indent..).unwrap_or_default()))
                .collect();
            let notes = std::mem::take(&mut notes);
            steps.extend(
                block(language, &body, &notes).map_err(|what| format!("line {number}: {what}"))?,
            );
        }
    }
    Ok(steps)
}

/// Reads a comment into the notes for the next block, or as a step of its own.
fn note(comment: &str, notes: &mut Notes) -> Result<Option<What>, String> {
    if let Some(commands) = comment.strip_prefix("before:") {
        return Ok(Some(What::Before(commands.trim().to_owned())));
    }
    if comment == "stop the server" {
        return Ok(Some(What::Stop));
    }
    if let Some(rest) = comment.strip_prefix("exit code ") {
        let code = rest.split(':').next().unwrap_or_default();
        notes.code = code.trim().parse().map_err(|_| format!("'{code}' is not an exit code"))?;
    } else if let Some(rest) = comment.strip_prefix("not run") {
        let (words, reason) = rest.split_once(':').ok_or("`not run` without a reason")?;
        let words = words.trim().trim_start_matches('(').trim_end_matches(')');
        let reason = reason.trim();
        let is_known =
            REASONS.iter().any(|(known, _)| reason.split([' ', ',']).next() == Some(known));
        if !is_known {
            return Err(format!("'{reason}' does not begin with one of {REASONS:?}"));
        }
        notes.not_run.push((words.to_owned(), reason.to_owned()));
    }
    Ok(None)
}

/// The commands of a block: of `sh` all lines, of `console` those after `$ `.
fn block(language: &str, body: &[(usize, &str)], notes: &Notes) -> Result<Vec<Step>, String> {
    let commands = match language {
        "sh" => logical(body.iter().map(|(number, line)| (*number, *line))),
        "console" => logical(
            body.iter().filter_map(|(number, line)| Some((*number, line.strip_prefix("$ ")?))),
        ),
        _ => {
            let is_command = |line: &str| {
                line.starts_with("$ ") || language.is_empty() && line.starts_with("tenuto ")
            };
            return match body.iter().find(|(_, line)| is_command(line)) {
                Some((_, line)) => Err(format!("mark the block `sh` or `console`: {line}")),
                None => Ok(Vec::new()),
            };
        }
    };
    for (words, _) in &notes.not_run {
        let is_used = commands.iter().any(|(_, command)| command.contains(words.as_str()));
        if !is_used {
            return Err(format!("no command contains '{words}'"));
        }
    }
    let last = commands.len().saturating_sub(1);
    let steps = commands.into_iter().enumerate().map(|(index, (line, command))| {
        let not_run = notes.not_run.iter().find(|(words, _)| command.contains(words.as_str()));
        let what = match not_run {
            Some((_, reason)) => What::NotRun { command, reason: reason.clone() },
            None => What::Run { command, code: if index == last { notes.code } else { 0 } },
        };
        Step { line, what }
    });
    Ok(steps.collect())
}

/// Lines joined where a backslash or an open loop continues them, without comments and empty ones.
fn logical<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<(usize, String)> {
    let mut commands: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (number, line) in lines {
        match commands.last_mut() {
            Some((_, command)) if is_open => {
                let _ = write!(command, "\n{line}");
            }
            _ if line.trim().is_empty() || line.starts_with('#') => continue,
            _ => commands.push((number, line.to_owned())),
        }
        let command = commands.last().map_or("", |(_, command)| command.as_str());
        let in_loop = command.starts_with("for ") && !command.contains("done");
        is_open = line.ends_with('\\') || in_loop;
    }
    commands
}

#[test]
fn a_page_becomes_steps() {
    let text = "\
Text.

<!-- before: touch a -->
<!-- not run (/dev): disk -->
```sh
tenuto ls a \\
    --long     # with sizes
# a comment
tenuto ls /dev/sdb
```

<!-- exit code 3: too many -->
```console
$ tenuto plan
output
```
<!-- stop the server -->
<!-- not run: root, because it mounts -->
```sh
for n in 1 2; do
    mount $n
done
```
";
    let steps = steps(text).expect("a page");
    let found: Vec<_> = steps.iter().map(|step| (step.line, &step.what)).collect();
    let run = |command: &str, code| What::Run { command: command.to_owned(), code };
    let not_run = |command: &str, reason: &str| What::NotRun {
        command: command.to_owned(),
        reason: reason.to_owned(),
    };
    let expected = [
        (3, What::Before("touch a".to_owned())),
        (6, run("tenuto ls a \\\n    --long     # with sizes", 0)),
        (9, not_run("tenuto ls /dev/sdb", "disk")),
        (14, run("tenuto plan", 3)),
        (17, What::Stop),
        (20, not_run("for n in 1 2; do\n    mount $n\ndone", "root, because it mounts")),
    ];
    assert_eq!(found, expected.iter().map(|(line, what)| (*line, what)).collect::<Vec<_>>());
}

#[test]
fn a_wrong_note_is_an_error() {
    for (text, error) in [
        ("<!-- not run: lazy -->\n", "line 1: 'lazy' does not begin with one of"),
        ("<!-- not run (/dev): disk -->\n```sh\nls\n```\n", "line 2: no command contains '/dev'"),
        ("```\n$ tenuto ls\n```\n", "line 1: mark the block `sh` or `console`: $ tenuto ls"),
    ] {
        let found = steps(text).err().unwrap_or_default();
        assert!(found.starts_with(error), "{found}");
    }
}
