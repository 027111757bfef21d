//! `completions` and `man`: the program about itself.

use crate::cli::{self, Args};
use crate::failure::Failure;
use crate::{out, reference};
use clap_complete::Shell;
use std::str::FromStr;

pub(crate) fn completions(args: &Args<'_>) -> Result<(), Failure> {
    let shell = Shell::from_str(&args.text("SHELL")).map_err(Failure::new)?;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "tenuto", &mut script);
    out::print(&String::from_utf8_lossy(&script));
    Ok(())
}

pub(crate) fn man(args: &Args<'_>) -> Result<(), Failure> {
    if args.has("markdown") {
        out::print(&reference::markdown());
        return Ok(());
    }
    let page = match args.maybe::<String>("COMMAND") {
        None => whole(),
        Some(name) => of_command(&name)?,
    };
    out::print(&page);
    Ok(())
}

/// tenuto(1): the front page and where the others are.
fn whole() -> String {
    render(cli::command())
}

fn of_command(name: &str) -> Result<String, Failure> {
    let root = cli::command();
    let command = root.find_subcommand(name).cloned().ok_or_else(|| {
        Failure::usage(format!("there is no command '{name}'"))
            .hint("`tenuto --help` lists the commands")
    })?;
    Ok(render(command.name(format!("tenuto-{name}")).bin_name(format!("tenuto {name}"))))
}

fn render(command: clap::Command) -> String {
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .date("")
        .render(&mut page)
        .expect("writing to memory does not fail");
    String::from_utf8_lossy(&page).into_owned()
}
