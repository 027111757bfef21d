//! The program about itself.

use super::{Command, Row, Value};

pub(super) const COMMANDS: &[Command] = &[COMPLETIONS, MAN];

const COMPLETIONS: Command = Command {
    name: "completions",
    about: "Print a shell's completions",
    long: "For bash: tenuto completions bash > ~/.local/share/bash-completion/completions/tenuto",
    inner: &[],
    rows: &[Row::needed("SHELL", Value::Choice(SHELLS), "The shell")
        .example("completions bash")
        .bad("completions csh", "SHELL: 'csh' is not one of bash, zsh, fish, elvish, powershell")],
};

const SHELLS: &[(&str, &str)] =
    &[("bash", ""), ("zsh", ""), ("fish", ""), ("elvish", ""), ("powershell", "")];

const MAN: Command = Command {
    name: "man",
    about: "Print the manual",
    long: "tenuto man serve | man -l -",
    inner: &[],
    rows: &[
        Row::maybe("COMMAND", Value::Text, "The command whose page is wanted")
            .example("man serve")
            .bad("man serve play", "unexpected argument 'play'"),
        Row::switch("markdown", "The whole reference as Markdown")
            .example("man --markdown")
            .bad("man --markdown=yes", "--markdown takes no value"),
    ],
};
