//! Layouts as arithmetic, and files that are made, used and removed.

use super::*;
use crate::error::MeterErrorKind;
use crate::log::OperationKind;
use std::path::PathBuf;
use std::time::Instant;
use units::{ByteCount, Hinted, Moment};

#[test]
fn streams_do_not_overlap_where_the_layout_separates_them() {
    let size = ByteCount(10 << 20);
    for (layout, files, slots, second) in [
        (Layout::OneFile, 1, 6, (0, 6 << 18)),
        (Layout::SharedFile, 1, 40, (0, 6 << 18)),
        (Layout::FilePerStream, 6, 6, (1, 0)),
        (Layout::FilePerFrame, 40, 6, (6, 0)),
    ] {
        let shape = FileSet::of(layout, size, 6, 1 << 18);
        let name = layout.name();
        let room = shape.places(6, 1 << 18);
        assert_eq!((shape.files, room.slots()), (files, slots), "{name}");
        assert_eq!(room.of(1, 0), second, "{name}");
        assert_eq!(name.parse(), Ok(layout));
        let places = |stream| {
            let numbers = 0..room.slots() * 2;
            numbers
                .map(move |number| room.of(stream, number))
                .collect::<std::collections::BTreeSet<_>>()
        };
        let all: std::collections::BTreeSet<_> = (0..6).flat_map(places).collect();
        let apart = if layout == Layout::SharedFile { 40 } else { 6 * slots };
        assert_eq!(all.len() as u64, apart, "{name}");
        for (file, offset) in all {
            assert!(file < shape.files && offset + (1 << 18) <= shape.each.0, "{name}");
        }
    }
}

#[test]
fn a_file_set_knows_how_many_streams_have_room() {
    let most =
        |layout, size| FileSet::of(layout, ByteCount(size), 100, 1 << 18).most_streams(1 << 18);
    assert_eq!(most(Layout::OneFile, 1 << 20), 4);
    assert_eq!(most(Layout::SharedFile, 1 << 20), u32::MAX);
    assert_eq!(most(Layout::SharedFile, 1 << 10), 0);
    assert_eq!(most(Layout::FilePerStream, 1 << 20), 0);
    assert_eq!(most(Layout::FilePerStream, 25 << 20), 100);
    assert_eq!(most(Layout::FilePerFrame, 1 << 20), 4);
}

/// An empty directory that is removed with the value.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("meter-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir(&dir).unwrap();
        Self(dir)
    }

    fn holds(&self) -> usize {
        std::fs::read_dir(&self.0).unwrap().count()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn wanted(layout: Layout, writing: WriteAccess) -> TargetNeeds {
    let shape = FileSet::of(layout, ByteCount::mib(1), 4, 1 << 18);
    TargetNeeds { shape, set: 0, named: None, direct: true, writing, left: LeftBehind::default() }
}

/// Files that are opened for each write and written in place.
fn written(paths: Vec<PathBuf>) -> Use {
    Use {
        paths,
        direct: false,
        write: true,
        keep: false,
        anew: Anew::InPlace,
        ragged: false,
        at_once: 1,
        largest: ByteCount(1000),
        verifier: None,
    }
}

#[test]
fn what_cannot_be_removed_is_noted() {
    let dir = Dir::new("kept");
    let left = LeftBehind::default();
    let want =
        TargetNeeds { left: left.clone(), ..wanted(Layout::FilePerFrame, WriteAccess::OwnFiles) };
    let place = TargetStorage::at(&dir.0, &want, &mut |_| true).unwrap();
    let TargetStorage::Many { files, .. } = &place else { panic!("{place:?}") };
    let (path, gone) = (files.path(2), files.path(3));
    // A directory is no file that can be removed, whoever runs the test; a file that somebody else
    // has removed is not left.
    std::fs::remove_file(&gone).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    drop(place);
    let above = path.parent().unwrap().display();
    let notes = left.take();
    let [note] = notes.as_slice() else { panic!("{notes:?}") };
    let begins = format!("1 file of {above} could not be removed: {}: ", path.display());
    assert!(note.starts_with(&begins) && note.ends_with(&format!("; rm -r {above}")), "{note}");
    assert_eq!(left.take(), Vec::<String>::new());

    drop(TargetStorage::at(&dir.0, &TargetNeeds { set: 1, ..want }, &mut |_| true).unwrap());
    assert_eq!(left.take(), Vec::<String>::new(), "all files are removed");
}

#[test]
fn files_of_a_killed_meter_are_named_with_the_command_that_removes_them() {
    let dir = Dir::new("killed");
    // Larger than any process number of the kernel.
    let (ended, own) = (4_194_305, std::process::id());
    for (name, bytes) in [
        (format!(".tenuto-meter-{ended}/A001/1"), 3 << 20),
        (format!(".tenuto-meter-{ended}/2"), 1 << 20),
        (format!(".tenuto-meter-{ended}-1/3"), 0),
        (format!(".tenuto-meter-{ended}-fill"), 4096),
        (format!(".tenuto-meter-{own}/4"), 5),
        (".tenuto-meter-notes/5".to_owned(), 6),
        (format!("tenuto-meter-{ended}/6"), 7),
    ] {
        let path = dir.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, vec![1; bytes]).unwrap();
    }
    let path = dir.0.join(format!(".tenuto-meter-{ended}"));
    let path = path.display();
    assert_eq!(
        LeftBehind::default().of_ended_meters(&dir.0, false),
        [("", "4 MiB"), ("-1", "0 B"), ("-fill", "4 KiB")].map(|(set, size)| format!(
            "{path}{set} ({size}) was left by a meter that has ended; remove it: rm -r {path}{set}"
        ))
    );
    let left = LeftBehind::default();
    let shared = &left.of_ended_meters(&dir.0, true)[0];
    assert!(shared.contains("; remove it, unless a meter on another machine uses it:"), "{shared}");
    assert_eq!(left.of_ended_meters(&dir.0, true), Vec::<String>::new(), "once is enough");
    assert_eq!(left.of_ended_meters(&dir.0.join("nowhere"), false), Vec::<String>::new());
}

#[test]
fn frames_have_the_names_of_their_clips_and_existing_ones_stay() {
    let dir = Dir::new("clips");
    let names: FrameNames = "A%03c/A%03c_%04d.dpx".parse().unwrap();
    let made = NamedFiles { names: names.clone(), clips: 2, existing: None };
    let want =
        TargetNeeds { named: Some(made), ..wanted(Layout::FilePerFrame, WriteAccess::OwnFiles) };
    let place = TargetStorage::at(&dir.0, &want, &mut |_| true).unwrap();
    let TargetStorage::Many { files, .. } = &place else { panic!("{place:?}") };
    let ends: Vec<String> = (0..files.files())
        .map(|number| {
            let path = files.path(number);
            assert_eq!(path.metadata().unwrap().len(), 1 << 18);
            path.components().rev().take(2).map(|part| part.as_os_str().to_str().unwrap()).collect()
        })
        .collect();
    assert_eq!(
        ends,
        ["A001_0000.dpxA001", "A001_0001.dpxA001", "A002_0000.dpxA002", "A002_0001.dpxA002"]
    );
    drop(place);
    assert_eq!(dir.holds(), 0, "all are removed with their directories");

    // Numbers begin anywhere and have gaps, and sizes are no whole pages.
    std::fs::create_dir(dir.0.join("A007")).unwrap();
    for (name, bytes) in [
        ("A007_0100.dpx", 5000),
        ("A007_0086.dpx", 5000),
        ("A007_0087.dpx", 6000),
        ("notes.txt", 1),
    ] {
        std::fs::write(dir.0.join("A007").join(name), vec![1; bytes]).unwrap();
    }
    let there = |least| TargetNeeds {
        named: Some(NamedFiles {
            names: names.clone(),
            clips: 1,
            existing: Some(ByteCount(least)),
        }),
        ..wanted(Layout::FilePerFrame, WriteAccess::No)
    };
    let place = TargetStorage::at(&dir.0, &there(5000), &mut |_| true).unwrap();
    assert_eq!((place.shape().files, place.shape().each), (3, ByteCount(8192)));
    let TargetStorage::Many { files, .. } = &place else { panic!("{place:?}") };
    let paths: Vec<PathBuf> = (0..3).map(|number| files.path(number)).collect();
    assert!(paths.is_sorted(), "{paths:?}");
    let how = Use {
        ragged: true,
        write: false,
        anew: Anew::No,
        largest: ByteCount(5000),
        ..written(paths)
    };
    let mut port = files_port(Use { direct: true, ..how }, Instant::now()).unwrap();
    let handle = Handle::Own { client: 0, open: true, close: true };
    let mut done = Vec::new();
    for (file, len, ok) in [(0, 5000, true), (1, 5000, true), (0, 5001, false)] {
        port.begin(IoRequest { file, handle, ..IoRequest::read(0, 0, len) }).unwrap();
        while done.is_empty() {
            port.wait(Moment::MAX, &mut done).unwrap();
        }
        assert_eq!(done.pop().unwrap().result.is_ok(), ok, "{len} of file {file}");
    }
    drop((port, place));
    assert_eq!(dir.holds(), 1, "existing frames stay");
    let short = TargetStorage::at(&dir.0, &there(5001), &mut |_| true).unwrap_err();
    assert_eq!(short.kind, MeterErrorKind::Usage);
    assert!(short.message.contains("has 5 kB"), "{short}");
    // Reads of holes do not reach the disk, in a sequence no more than in a single file.
    let hole = dir.0.join("A007/A007_0101.dpx");
    std::fs::File::create(&hole).unwrap().set_len(1 << 20).unwrap();
    let sparse = TargetStorage::at(&dir.0, &there(5000), &mut |_| true).unwrap_err();
    assert!(sparse.message.contains("A007_0101.dpx have no place on disk"), "{sparse}");
}

#[test]
fn files_are_made_used_and_removed() {
    let dir = Dir::new("made");
    let want = wanted(Layout::FilePerStream, WriteAccess::OwnFiles);
    let place = TargetStorage::at(&dir.0, &want, &mut |_| true).unwrap();
    assert_eq!((place.shape(), dir.holds()), (want.shape, 1));
    let TargetStorage::Many { files, .. } = &place else { panic!("{place:?}") };
    let paths: Vec<PathBuf> = (0..files.files()).map(|number| files.path(number)).collect();
    let before: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert!(before[0] != before[1], "no two files are alike");
    let how = Use {
        direct: true,
        keep: true,
        anew: Anew::No,
        at_once: 3,
        largest: ByteCount(5000),
        ..written(paths.clone())
    };
    let mut port = files_port(how, Instant::now()).unwrap();
    let handles = [
        Handle::Kept,
        Handle::Own { client: 1, open: true, close: true },
        Handle::Own { client: 2, open: true, close: false },
        Handle::Own { client: 2, open: false, close: true },
    ];
    let mut done = Vec::new();
    for (tag, handle) in (0..).zip(handles) {
        let kind = if tag == 1 { OperationKind::Write } else { OperationKind::Read };
        let request = IoRequest { tag, kind, file: 2, offset: 4096 * tag, len: 5000, handle };
        port.begin(request).unwrap();
        // One after another: a client has at most one operation in flight.
        while done.len() as u64 <= tag {
            port.wait(Moment::MAX, &mut done).unwrap();
        }
    }
    assert!(done.iter().all(|arrived| arrived.result.is_ok()), "{done:?}");
    let took = |arrived: &IoCompletion| (!arrived.open.is_zero(), !arrived.close.is_zero());
    let took: Vec<_> = done.iter().map(took).collect();
    assert_eq!(took, [(false, false), (true, true), (true, false), (false, true)]);
    drop(port);
    let after = std::fs::read(&paths[2]).unwrap();
    assert!(after != before[2] && after[..4096] == before[2][..4096], "its own place only");
    drop(place);
    assert_eq!(dir.holds(), 0, "nothing is left");
}

#[test]
fn a_frame_that_is_created_again_is_a_new_file() {
    let dir = Dir::new("anew");
    let want = wanted(Layout::FilePerFrame, WriteAccess::OwnFiles);
    let TargetStorage::Many { files, .. } =
        TargetStorage::at(&dir.0, &want, &mut |_| true).unwrap()
    else {
        panic!("many files")
    };
    let how = written((0..files.files()).map(|number| files.path(number)).collect());
    let mut port = files_port(how, Instant::now()).unwrap();
    let handle = Handle::Own { client: 0, open: true, close: true };
    port.begin(IoRequest {
        tag: 7,
        kind: OperationKind::Write,
        file: 3,
        offset: 0,
        len: 1000,
        handle,
    })
    .unwrap();
    let mut done = Vec::new();
    while done.is_empty() {
        port.wait(Moment::MAX, &mut done).unwrap();
    }
    assert!(done[0].result.is_ok(), "{done:?}");
    assert_eq!(std::fs::metadata(files.path(3)).unwrap().len(), 1000);
}

#[test]
fn a_file_is_replaced_only_when_the_new_one_is_complete() {
    let dir = Dir::new("replaced");
    let want = wanted(Layout::FilePerStream, WriteAccess::OwnFiles);
    let TargetStorage::Many { files, .. } =
        TargetStorage::at(&dir.0, &want, &mut |_| true).unwrap()
    else {
        panic!("many files")
    };
    let paths = (0..files.files()).map(|number| files.path(number)).collect();
    let how = Use { anew: Anew::Replaced, at_once: 2, largest: ByteCount(4096), ..written(paths) };
    let mut port = files_port(how, Instant::now()).unwrap();
    let mut done = Vec::new();
    let mut write = |client, offset, open, close| {
        let handle = Handle::Own { client, open, close };
        let tag = done.len() as u64;
        port.begin(IoRequest {
            tag,
            kind: OperationKind::Write,
            file: 1,
            offset,
            len: 4096,
            handle,
        })
        .unwrap();
        while done.len() as u64 <= tag {
            port.wait(Moment::MAX, &mut done).unwrap();
        }
        assert!(done.iter().all(|arrived: &IoCompletion| arrived.result.is_ok()), "{done:?}");
        std::fs::metadata(files.path(1)).unwrap().len()
    };
    assert_eq!(write(5, 0, true, false), want.shape.each.0, "the old one, as long as it was");
    assert_eq!(write(5, 4096, false, true), 8192, "the new one");
    assert_eq!(write(6, 0, true, false), 8192);
    drop(port);
    drop(files);
    assert_eq!(dir.holds(), 0, "what was not finished is gone, too");
}

#[test]
fn files_of_the_user_are_neither_overwritten_nor_removed() {
    let dir = Dir::new("own");
    let film = dir.0.join("film");
    std::fs::write(&film, vec![7; 1 << 20]).unwrap();
    let at = |path: &PathBuf, want| {
        TargetStorage::at(path, &want, &mut |_| true).err().map(|e| e.one_line())
    };
    let said = at(&film, wanted(Layout::OneFile, WriteAccess::OwnFiles)).unwrap();
    assert!(said.contains("would be overwritten") && said.contains("--destroy"), "{said}");
    let said = at(&film, wanted(Layout::FilePerFrame, WriteAccess::No)).unwrap();
    assert!(said.contains("is one file, and file-per-frame takes many"), "{said}");
    assert_eq!(at(&film, wanted(Layout::SharedFile, WriteAccess::No)), None);
    assert_eq!(at(&film, wanted(Layout::OneFile, WriteAccess::Destructive)), None);
    assert_eq!(std::fs::read(&film).unwrap(), vec![7; 1 << 20], "nothing was asked for yet");
    // A directory that is in the way stays, and is named.
    std::fs::create_dir(dir.0.join(test_files::name())).unwrap();
    let said = at(&dir.0, wanted(Layout::FilePerFrame, WriteAccess::No)).unwrap();
    assert!(said.contains("remove what an earlier run left there"), "{said}");
    assert_eq!(dir.holds(), 2);
}

#[test]
fn a_stopped_filling_leaves_nothing() {
    let dir = Dir::new("stop");
    for layout in [Layout::OneFile, Layout::FilePerStream] {
        let mut left = 2;
        let mut go_on = |_| {
            left -= 1;
            left > 0
        };
        let stopped = TargetStorage::at(&dir.0, &wanted(layout, WriteAccess::No), &mut go_on);
        // A mebibyte is one piece, so that the single file is full before `go_on` is called again.
        assert!(
            layout == Layout::OneFile
                || stopped.as_ref().is_err_and(|error| error.message.starts_with("interrupted"))
        );
        drop(stopped);
        assert_eq!(dir.holds(), 0);
    }
}

#[test]
fn a_link_that_was_put_there_after_the_check_leads_nowhere() {
    let (dir, outside) = (Dir::new("links"), Dir::new("outside"));
    let film = outside.0.join("film");
    std::fs::write(&film, vec![7; 1 << 20]).unwrap();
    std::os::unix::fs::symlink(&outside.0, dir.0.join("link")).unwrap();
    std::os::unix::fs::symlink(&film, dir.0.join("film")).unwrap();
    std::fs::create_dir(outside.0.join("inner")).unwrap();
    for (path, layout, writing) in [
        ("film", Layout::OneFile, WriteAccess::No),
        ("film", Layout::OneFile, WriteAccess::Destructive),
        ("link/film", Layout::SharedFile, WriteAccess::Destructive),
        ("link", Layout::OneFile, WriteAccess::OwnFiles),
        ("link/inner", Layout::OneFile, WriteAccess::No),
        ("link/inner", Layout::FilePerStream, WriteAccess::OwnFiles),
    ] {
        let opened = TargetStorage::at(&dir.0.join(path), &wanted(layout, writing), &mut |_| true);
        let said = opened.unwrap_err().one_line();
        assert!(said.contains("symbolic link"), "{path} {layout:?}: {said}");
    }
    assert_eq!(std::fs::read(&film).unwrap(), vec![7; 1 << 20]);
    assert_eq!((outside.holds(), outside.0.join("inner").read_dir().unwrap().count()), (2, 0));
}

#[test]
fn a_link_in_place_of_the_made_directory_leads_nowhere() {
    let (dir, outside) = (Dir::new("swapped"), Dir::new("stays"));
    let want = wanted(Layout::FilePerStream, WriteAccess::OwnFiles);
    let place = TargetStorage::at(&dir.0, &want, &mut |_| true).unwrap();
    let TargetStorage::Many { files, .. } = &place else { panic!("{place:?}") };
    let paths: Vec<PathBuf> = (0..files.files()).map(|number| files.path(number)).collect();
    let made = paths[0].parent().unwrap();
    for path in &paths {
        std::fs::write(outside.0.join(path.file_name().unwrap()), b"not the meter's").unwrap();
    }
    std::fs::rename(made, dir.0.join("moved")).unwrap();
    std::os::unix::fs::symlink(&outside.0, made).unwrap();
    let keep = Use { keep: true, anew: Anew::No, ..written(paths.clone()) };
    assert!(files_port(keep, Instant::now()).is_err());
    assert!(place.forget().is_err());
    drop(place);
    for path in &paths {
        let left = std::fs::read(outside.0.join(path.file_name().unwrap())).unwrap();
        assert_eq!(left, b"not the meter's");
    }
}
