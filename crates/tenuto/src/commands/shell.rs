//! `completions` and `man`: the program about itself.

use crate::args::simulation::{CompletionsArgs, ManArgs};
use crate::failure::Failure;
use crate::{cli, out, reference};

pub(crate) fn completions(args: &CompletionsArgs) {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "tenuto", &mut script);
    out::print(&String::from_utf8_lossy(&script));
}

pub(crate) fn man(args: &ManArgs) -> Result<(), Failure> {
    let page = match args.markdown {
        true => reference::markdown(),
        false => manual(&args.command)?,
    };
    out::print(&page);
    Ok(())
}

/// The manual page of a command named by its words; without any that of the program.
fn manual(words: &[String]) -> Result<String, Failure> {
    let mut command = cli::command();
    let mut name = command.get_name().to_owned();
    for word in words {
        command = command.find_subcommand(word).cloned().ok_or_else(|| {
            Failure::usage(format!("there is no command '{word}'"))
                .hint(format!("`{name} --help` lists the commands"))
        })?;
        name = format!("{name} {word}");
    }
    let command = command.name(name.replace(' ', "-")).bin_name(name);
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .date("")
        .render(&mut page)
        .expect("writing to memory does not fail");
    Ok(String::from_utf8_lossy(&page).into_owned())
}
