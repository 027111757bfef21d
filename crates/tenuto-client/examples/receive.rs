//! Receives the first ten seconds of a title, and prints each LDU:
//! `cargo run -p tenuto-client --example receive http://127.0.0.1:8080/t/film/master.m3u8`, or with an
//! address of RTSP.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for a terminal")]

use std::process::ExitCode;
use std::time::Duration;
use tenuto_client::{ClientError, OpenTitle, Received, TitleOptions};
use units::Hinted;

fn main() -> ExitCode {
    let Some(url) = std::env::args().nth(1) else {
        eprintln!("give the address of an HLS playlist, a DASH manifest, or RTSP");
        return ExitCode::from(2);
    };
    match receive(&url) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}\n{}", error.hint().unwrap_or_default());
            ExitCode::FAILURE
        }
    }
}

fn receive(url: &str) -> Result<(), ClientError> {
    let mut title = OpenTitle::open(url, TitleOptions::default())?;
    println!("{} tracks, {:?}", title.tracks(), title.duration());
    while title.position() < Duration::from_secs(10) {
        match title.receive(Duration::from_millis(100))? {
            Received::Ldu(ldu) => {
                let kind = if ldu.sync { "key" } else { "" };
                println!("{} {:>9.3?} {:>8} B {kind}", ldu.track, ldu.time, ldu.bytes.len());
            }
            Received::Nothing => {}
            Received::End => break,
        }
    }
    println!("{} stalls", title.report().stalls.count);
    Ok(())
}
