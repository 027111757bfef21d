//! Names that would be something else to a shell, a path, a URL, a playlist or a terminal.

use crate::program::TestDir;
use crate::stage::{assert_unchanged, connect, fetch_all, holdings};
use serde_json::Value;
use units::show::is_control;

#[test]
fn titles_with_tricky_names_are_played_and_given_back_under_them() {
    let dir = TestDir::with_store();
    dir.film("film.mkv");
    let long = "ß".repeat(127);
    let names = [
        "../../etc/passwd",
        "/etc/passwd",
        "..%2f..%2fx",
        "a/b/master.m3u8",
        "film.mp4",
        "?s=0#x",
        "%",
        "\"quoted\", 'twice' & <script>alert(1)</script>",
        "#EXT-X-ENDLIST",
        " leading and trailing ",
        "{\"json\": [",
        "a\\b",
        "\u{5e9}\u{200f}!\u{6cc}\u{200c}",
        "ünï\u{308}cödé 🎬",
        &long,
    ];
    let before = std::fs::read_dir(dir.path(".")).unwrap().count();
    for name in names {
        let run = dir.run_words(&["ingest", "a.store", "film.mkv", "--title", name]);
        assert_eq!(run.code, Some(0), "{name}: {}", run.err);
    }
    let server = dir.serve("--access-log access.log");
    let mut client = connect(&server);
    let listed = client.get("/titles").json();
    for name in names {
        let title = |it: &&Value| it["name"] == name;
        let title = listed["titles"].as_array().unwrap().iter().find(title).expect(name);
        let (_, file) = client.get_following(title["mp4"].as_str().unwrap());
        assert!(file.status == 200 && file.whole && file.body.starts_with(b"\0\0"), "{name}");
        let parts = fetch_all(&mut client, title["hls"].as_str().unwrap());
        assert!(parts.len() >= 4 && parts.iter().all(|(_, status, _)| *status == 200), "{name}");
        let run = dir.run_words(&["export", "a.store", name, "out.mp4", "--destroy"]);
        assert_eq!(run.code, Some(0), "{name}: {}", run.err);
        assert!(dir.read("out.mp4") == file.body, "{name}");
    }
    assert_eq!(server.stop(), Some(0));
    let log = String::from_utf8(dir.read("access.log")).unwrap();
    assert!(log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{log}");
    for name in names {
        assert_eq!(dir.run_words(&["rm", "a.store", name]).code, Some(0), "{name}");
    }
    let made = std::fs::read_dir(dir.path(".")).unwrap().count() - before;
    assert_eq!(made, 3, "out.mp4, access.log and the folder of control sockets, no other file");
}

#[test]
fn names_that_cannot_be_are_refused_and_never_reach_the_terminal() {
    let dir = TestDir::with_store();
    dir.write("a.bin", "a");
    let before = holdings(&dir);
    let long = "x".repeat(256);
    for (name, reason) in [
        (".", "it means a folder"),
        ("..", "it means a folder"),
        ("two\nlines", "control characters"),
        ("\u{1b}[31mred", "control characters"),
        ("\u{9b}31mred", "control characters"),
        ("\u{202e}4pm.film", "(U+202E)"),
        ("a\u{202a}b", "(U+202A)"),
        ("a\u{2066}b", "(U+2066)"),
        ("a\u{2069}b", "(U+2069)"),
        ("fi\u{200b}lm", "(U+200B)"),
        ("\u{feff}film", "(U+FEFF)"),
        (long.as_str(), "longer than 255 bytes"),
    ] {
        let words = ["ingest", "a.store", "a.bin", "--as", "file", "--title", name];
        let run = dir.run_words(&words);
        assert_eq!(run.code, Some(1), "{name:?}: {}", run.err);
        let told = run.err.contains("cannot be a title's name") && run.err.contains(reason);
        assert!(
            told && run.err.ends_with("\nhint: choose another name\n"),
            "{name:?}: {}",
            run.err
        );
        assert!(!run.err.trim_end().replace('\n', "").contains(is_control), "{:?}", run.err);
    }
    dir.ok("ingest a.store a.bin --as file --title film");
    let run = dir.run_words(&["rename", "a.store", "film", "film\u{200b}"]);
    assert!(run.code == Some(1) && run.err.contains("(U+200B)"), "{}", run.err);
    dir.ok("rm a.store film");
    // A file's own name is a stranger's, too.
    let evil = "error\u{1b}]0;owned\u{7}\n\u{202e}error: all is well.mp4";
    dir.write(evil, "no film");
    let run = dir.run_words(&["ingest", "a.store", evil, "--title", "x"]);
    assert_eq!((run.code, run.err.lines().count()), (Some(1), 2), "a sentence and a hint: {run:?}");
    assert!(!run.err.replace('\n', "").contains(is_control), "{:?}", run.err);
    assert_unchanged(&dir, &before, "nothing was taken in");
}
