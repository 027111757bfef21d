//! A known mix, written in each trace format, is recovered; other files are refused.

use super::*;
use crate::profiles::{Drawn, DrawnOperation, MILLION, OperationMix, Profile};
use std::fmt::Write as _;
use units::Hinted;

fn mix(sequential_per_million: u32, sizes: &[(u64, u32)]) -> Option<OperationMix> {
    Some(OperationMix { sequential_per_million, sizes: sizes.to_vec() })
}

/// The mix of an editor: mostly sequential reads, less sequential writes.
fn known() -> Drawn {
    Drawn {
        operations_per_1000_s: Some(240_000),
        reads_per_million: 720_000,
        reads: mix(900_000, &[(65_536, 200_000), (524_288, 300_000), (1_048_576, 500_000)]),
        writes: mix(600_000, &[(4096, 250_000), (262_144, 750_000)]),
    }
}

fn draws() -> Vec<DrawnOperation> {
    known().draws(1 << 40, 3362).take(20_000).collect()
}

/// Asserts that two values differ by at most 5 %; shares by 5 % of the smaller side.
fn near(what: &str, got: f64, wanted: f64) {
    assert!((got - wanted).abs() <= wanted * 0.05, "{what}: {got}, and {wanted} is wanted");
}

fn same(got: &Drawn, wanted: &Drawn) {
    let of = |share: u32| f64::from(share);
    let rate = |drawn: &Drawn| drawn.operations_per_1000_s.map(|rate| rate as f64);
    if let (Some(got), Some(wanted)) = (rate(got), rate(wanted)) {
        near("rate", got, wanted);
    }
    near("reads", of(got.reads_per_million), of(wanted.reads_per_million));
    near("writes", of(MILLION - got.reads_per_million), of(MILLION - wanted.reads_per_million));
    for (got, wanted) in [(&got.reads, &wanted.reads), (&got.writes, &wanted.writes)] {
        let (got, wanted) = (got.as_ref().unwrap(), wanted.as_ref().unwrap());
        near("sequential", of(got.sequential_per_million), of(wanted.sequential_per_million));
        assert_eq!(got.sizes.len(), wanted.sizes.len(), "{:?}", got.sizes);
        for ((bytes, share), (wanted_bytes, wanted_share)) in got.sizes.iter().zip(&wanted.sizes) {
            assert_eq!(bytes, wanted_bytes);
            near("size", of(*share), of(*wanted_share));
        }
    }
}

fn counted(trace: &[u8]) -> Drawn {
    shape(&read(trace, None).unwrap_or_else(|error| panic!("{error}"))).drawn
}

fn lines(head: &str, line: impl Fn(&mut String, &DrawnOperation, Duration)) -> Vec<u8> {
    let mut text = head.to_owned();
    for draw in draws() {
        line(&mut text, &draw, draw.at.unwrap());
        text.push('\n');
    }
    text.into_bytes()
}

fn fio3() -> Vec<u8> {
    lines("fio version 3 iolog\n1 /mnt/a add\n2 /mnt/a open\n", |text, d, at| {
        let what = if d.write { "write" } else { "read" };
        let _ = write!(text, "{} /mnt/a {what} {} {}", at.as_micros(), d.offset, d.bytes);
    })
}

fn strace() -> Vec<u8> {
    let head = "7 1795287628.000001 openat(AT_FDCWD, \"/mnt/a\", O_RDWR) = 3</mnt/a>\n\
        7 1795287628.000002 read(4</usr/lib/libc.so.6>, \"\\177ELF\"..., 832) = 832\n";
    lines(head, |text, d, at| {
        let at = Duration::from_secs(1_795_287_628) + at;
        let what = if d.write { "pwrite64" } else { "pread64" };
        let (secs, micros) = (at.as_secs(), at.subsec_micros());
        let _ = write!(
            text,
            "7 {secs}.{micros:06} {what}(3</mnt/a>, \"a, b) = 3\"..., {}, {}) = {} <0.000100>",
            d.bytes, d.offset, d.bytes
        );
    })
}

fn blkparse() -> Vec<u8> {
    lines("", |text, d, at| {
        let what = if d.write { "WS" } else { "R" };
        let (secs, nanos) = (at.as_secs(), at.subsec_nanos());
        let _ = write!(text, "  8,0    3        1 {secs:5}.{nanos:09}   697  ");
        let place = format!("{what} {} + {} [cp]", d.offset / 512, d.bytes / 512);
        let _ = write!(text, "Q  {place}\n  8,0 3 2 {secs}.{nanos:09} 697 D {place}");
    })
}

fn blktrace(little: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, draw) in (0u32..).zip(draws()) {
        let kind = if draw.write { 1u32 << 17 } else { 1 << 16 };
        let action = kind | 1;
        let count = u32::try_from(draw.bytes).unwrap();
        let nanos = u64::try_from(draw.at.unwrap().as_nanos()).unwrap();
        macro_rules! put {
            ($value:expr) => {
                bytes.extend(if little { $value.to_le_bytes() } else { $value.to_be_bytes() })
            };
        }
        put!(0x6561_7407u32);
        put!(number);
        put!(nanos);
        put!((draw.offset / 512));
        [count, action, 697, 0x80_0000, 3].iter().for_each(|word| put!(word));
        [0u16, 2].iter().for_each(|word| put!(word));
        bytes.extend([1, 2]);
    }
    bytes
}

fn tshark() -> Vec<u8> {
    let head = "frame.time_epoch\tnfs.fh.hash\tnfs.procedure_v3\tnfs.offset3\tnfs.count3\tnfs.opcode\t\
        nfs.offset4\tnfs.count4\tnfs.write.data_length\n";
    lines(head, |text, d, at| {
        let (secs, nanos) = (at.as_secs(), at.subsec_nanos());
        let _ = write!(text, "{secs}.{nanos:09}\t0x1a2b3c4d\t");
        let _ = match d.write {
            true => write!(text, "\t\t\t53,22,38,9\t{}\t\t{}", d.offset, d.bytes),
            false => write!(text, "6\t{}\t{}\t\t\t\t", d.offset, d.bytes),
        };
    })
}

/// Lines of a capture in which several calls of a client share a frame.
#[test]
fn calls_that_share_a_frame_keep_their_own_positions_and_files() {
    let text = "frame.time_epoch\tnfs.fh.hash\tnfs.procedure_v3\tnfs.offset3\tnfs.count3\tnfs.opcode\t\
        nfs.offset4\tnfs.count4\tnfs.write.data_length\n\
        1.5\t0xa,0xb,0xa,0xb\t6,7,21,6\t0,4096,0,8192\t512,1024,0,2048\t\t\t\t\n\
        2.5\t0xa,0xb\t\t\t\t53,22,12,25,53,22,38,5,9\t77,10,20,20\t512,0\t1024\n";
    let trace = read(text.as_bytes(), None).unwrap();
    let said = |op: &Operation| (op.file, op.offset, op.bytes, op.write);
    let all: Vec<_> = trace.operations.iter().map(said).collect();
    let (a, b) = (0, 1);
    let expected = [
        (a, 0, 512, false),
        (b, 4096, 1024, true),
        (b, 8192, 2048, false),
        (a, 10, 512, false),
        (b, 20, 1024, true),
    ];
    assert_eq!(all, expected);
    assert_eq!(read(text.as_bytes(), Some("0xb")).unwrap().operations.len(), 3);
}

#[test]
fn each_format_gives_the_mix_that_was_drawn() {
    let all = [fio3(), strace(), blkparse(), blktrace(true), blktrace(false), tshark()];
    for trace in &all {
        same(&counted(trace), &known());
    }
}

#[test]
fn the_profile_of_a_trace_is_a_file_that_draws_the_same() {
    let shape = shape(&read(&fio3(), None).unwrap());
    let profile = profile("ours", "day.log, by \"fio\"", &shape);
    let again: Profile =
        toml::to_string(&profile).unwrap().parse().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again, profile);
    near("read_percent", again.read_percent.into(), 72.0);
    near("random_percent", again.random_percent.into(), 18.4);
    near("mean size", profile.bytes as f64, 0.72 * 694_682.0 + 0.28 * 197_632.0);
    let drawn = again.drawn.unwrap();
    let draws = drawn.draws(1 << 40, 1).take(20_000);
    let operations = draws.map(|d| Operation {
        at: d.at,
        file: 0,
        offset: d.offset,
        bytes: d.bytes,
        write: d.write,
    });
    let trace = Trace { operations: operations.collect(), ..Trace::default() };
    same(&super::shape(&trace).drawn, &known());
}

#[test]
fn sar_gives_rates_of_one_device() {
    let text = "Linux 6.1 (vm) \t11/21/26 \t_x86_64_\t(2 CPU)\n\n\
        19:01:00          tps     rkB/s     wkB/s   areq-sz     %util DEV\n\
        19:01:01       100.00   6400.00   1600.00     80.00      3.60 vda\n\
        19:01:01         5.00     64.00      0.00     12.80      0.10 vdb\n\n\
        19:01:02       300.00  19200.00   4800.00     80.00     26.14 vda\n\
        Average:       200.00  12800.00   3200.00     80.00     15.00 vda\n";
    let several = read(text.as_bytes(), None).unwrap_err();
    assert_eq!(several, TraceError::Several("vda, vdb".into()));
    let shape = shape(&read(text.as_bytes(), Some("vda")).unwrap());
    let drawn = &shape.drawn;
    assert_eq!((drawn.operations_per_1000_s, drawn.reads_per_million), (Some(200_000), 800_000));
    assert_eq!(drawn.reads.as_ref().unwrap().sizes, [(80 * 1024, MILLION)]);
    assert!(!shape.places_known);
}

#[test]
fn descriptors_are_followed_where_names_are_missing() {
    let text = "\
[pid 11] 10:00:00.000000 openat(AT_FDCWD, \"/mnt/a\", O_RDONLY) = 3
[pid 11] 10:00:00.100000 read(3, \"x\"..., 1000) = 1000
[pid 12] 10:00:00.200000 read(3,  <unfinished ...>
[pid 11] 10:00:00.250000 write(1, \"log\\n\", 4) = 4
[pid 12] 10:00:00.300000 <... read resumed>\"y\"..., 1000) = 500
[pid 11] 10:00:00.400000 lseek(3, 5000, SEEK_SET) = 5000
[pid 11] 10:00:00.500000 read(3, \"z\"..., 1000) = 1000
[pid 11] 10:00:00.600000 read(3, \"\", 1000) = 0
[pid 11] 10:00:00.700000 read(9, 0x7ffe, 10) = -1 EBADF (Bad file descriptor)
[pid 11] 10:00:00.800000 close(3) = 0
[pid 11] +++ exited with 0 +++
";
    let trace = read(text.as_bytes(), None).unwrap();
    let got: Vec<(u64, u64)> = trace.operations.iter().map(|op| (op.offset, op.bytes)).collect();
    assert_eq!(got, [(0, 1000), (1000, 500), (5000, 1000)]);
    let times: Vec<u128> = trace.operations.iter().map(|op| op.at.unwrap().as_millis()).collect();
    assert_eq!(times, [36_000_100, 36_000_200, 36_000_500]);
    let drawn = shape(&trace).drawn;
    assert_eq!(drawn.reads.unwrap().sequential_per_million, 666_666);
}

#[test]
fn fio_without_times_has_no_rate_and_parallel_players_are_sequential() {
    let mut text = "fio version 2 iolog\n/a add\n/a open\n".to_owned();
    for block in 0..1000u64 {
        for player in 0..10 {
            let _ = writeln!(text, "/a read {} 4096", player * 1_000_000_000 + block * 4096);
        }
    }
    let drawn = counted(text.as_bytes());
    assert_eq!((drawn.operations_per_1000_s, &drawn.writes), (None, &None));
    assert!(drawn.reads.unwrap().sequential_per_million > 998_000);
}

#[test]
fn many_sizes_are_grouped_and_keep_their_mean() {
    let operation = |n: u64| Operation {
        at: Some(Duration::from_millis(n)),
        file: 0,
        offset: n << 30,
        bytes: 1000 + n * 37,
        write: false,
    };
    let trace = Trace { operations: (0..10_000).map(operation).collect(), ..Trace::default() };
    let drawn = shape(&trace).drawn;
    assert!(drawn.reads.as_ref().unwrap().sizes.len() <= 80);
    near("mean", drawn.mean_bytes() as f64, 1000.0 + 37.0 * 4999.5);
}

#[test]
fn a_truncated_or_unknown_trace_is_refused() {
    let mut cut = blktrace(true);
    cut.truncate(cut.len() - 7);
    let said = |trace: &[u8]| read(trace, None).unwrap_err().one_line();
    assert!(said(&cut).contains("was the trace cut short?"), "{}", said(&cut));
    cut[51] = 9;
    assert!(said(&cut).starts_with("at byte 50: an event begins with"), "{}", said(&cut));
    for (trace, line) in [(fio3(), 20_003), (strace(), 20_002), (tshark(), 20_001)] {
        let text = String::from_utf8(trace).unwrap();
        // Cut in the middle of the last line's second last number.
        let end = text.trim_end().len() - if line == 20_002 { 40 } else { 12 };
        let said = said(&text.as_bytes()[..end]);
        assert!(said.starts_with(&format!("line {line} ")), "{said}");
    }
    // Anywhere in the last line, whatever it is of; its end alone may be missing.
    let whole = String::from_utf8(strace()).unwrap();
    let (before, last) = whole.trim_end().rsplit_once('\n').unwrap();
    for end in 1..last.len() {
        let cut = format!("{before}\n{}", &last[..end]);
        let line = cut.lines().count();
        match read(cut.as_bytes(), None) {
            Err(error) => {
                let said = error.one_line();
                assert!(said.starts_with(&format!("line {line} ")), "{cut}: {said}");
            }
            // Digits of the result, or of the time behind it.
            Ok(_) => assert!(last[..end].contains(") = "), "{end}: {}", &last[..end]),
        }
    }
    for ending in
        ["12724 1795287629.1 +++ exited with 0 +++", "12724 1795287629.1 exit_group(0) = ?"]
    {
        assert!(read(format!("{before}\n{ending}").as_bytes(), None).is_ok(), "{ending}");
    }
    for garbage in [&b""[..], b"\0\xff\x12", b"hello\nworld (1, 2)\n", &[0xff; 4096]] {
        assert_eq!(read(garbage, None), Err(TraceError::Unknown));
    }
    assert!(said(b"fio version 3 iolog\n1 /a add\n").starts_with("no reads or writes"));
}
