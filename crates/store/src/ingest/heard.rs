//! What FFmpeg says while it reads a live input: errors, for the user, which streams it passes
//! over, and which programmes there are. FFmpeg says in warnings which streams it passes over. The
//! programmes, and the streams that are neither pictures nor sound, are in its description of the
//! input, of which only that is kept.

use super::probe::ProbedStream;
use std::io::Read;
use std::sync::Mutex;
use units::locked;

/// The options that make FFmpeg say it, each message with its level, and the description of the
/// input.
pub(super) const WITH_LEVELS: &[&str] =
    &["-nostdin", "-hide_banner", "-nostats", "-v", "level+info"];

/// What FFmpeg has said of an input so far.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// The latest errors, a line each.
    pub(super) errors: String,
    /// The streams whose form was not found in time, so that they are not recorded.
    pub(super) unknown: Vec<String>,
    /// The streams that have come since, and are not recorded either.
    pub(super) later: Vec<String>,
    /// The streams that have neither pictures nor sound, each with its programme if it has one.
    others: Vec<(Option<u32>, String)>,
    /// The sounds that are passed on for viewers who do not see or hear well, by their numbers
    /// there: whether for the former, and whether for the latter.
    impaired: Vec<(u32, [bool; 2])>,
    /// Whether what is described is the input, and not what becomes of it.
    is_of_input: bool,
    /// The programme whose streams are described.
    program: Option<u32>,
    /// The programmes of the input, each with its name if it has one.
    programs: Vec<(u32, Option<String>)>,
    /// Whether the message before was an error: it may have further lines.
    is_error: bool,
}

impl Heard {
    /// Takes a line.
    fn take(&mut self, line: &str) {
        let with_level = |level| Some((level, line.split_once(level)?.1.trim_start()));
        let levels = ["[error]", "[fatal]", "[panic]", WARNING, INFO];
        match levels.into_iter().find_map(with_level) {
            Some((level, text)) => {
                self.is_error = ![WARNING, INFO].contains(&level);
                if self.is_error {
                    self.add_error(text);
                } else if level == INFO {
                    self.take_description(text.trim());
                } else if let Some(stream) = unknown_stream(text) {
                    push(&mut self.unknown, format!("{stream}, whose form was not found in time"));
                } else if let Some(stream) = later_stream(text) {
                    push(&mut self.later, format!("{stream}, which began later"));
                }
            }
            None if self.is_error => self.add_error(line),
            None => {}
        }
    }

    /// `Input #0, mpegts, from ..`, `Program 1`, and among what follows it `service_name    : One`
    /// and `Stream #0:2[0x102](eng): Subtitle: dvb_subtitle ([6][0][0][0] / 0x0006)`.
    fn take_description(&mut self, text: &str) {
        if text.starts_with("Input #") || text.starts_with("Output #") {
            self.is_of_input = text.starts_with("Input #");
        } else if let Some(sound) = impaired_sound(text).filter(|_| !self.is_of_input) {
            if self.impaired.len() < MOST_STREAMS {
                self.impaired.push(sound);
            }
        } else if text == "No Program" {
            self.program = None;
        } else if let Some(stream) = other_stream(text).filter(|_| self.is_of_input) {
            let stream = (self.program, stream);
            if self.others.len() < MOST_STREAMS && !self.others.contains(&stream) {
                self.others.push(stream);
            }
        } else if let Some(number) =
            text.strip_prefix("Program ").and_then(|rest| rest.parse().ok())
        {
            self.program = Some(number);
            if self.programs.len() < MOST_PROGRAMS {
                self.programs.push((number, None));
            }
        } else if let Some(("service_name", name)) =
            text.split_once(':').map(|(key, name)| (key.trim(), name.trim()))
            && let Some((_, known)) = self.programs.last_mut()
        {
            known.get_or_insert_with(|| name.to_owned());
        }
    }

    /// The programmes for the user.
    pub(super) fn program_names(&self) -> Vec<String> {
        let named = |(number, name): &(u32, Option<String>)| match name {
            Some(name) => format!("{number} ({name})"),
            None => number.to_string(),
        };
        self.programs.iter().map(named).collect()
    }

    /// The streams with neither pictures nor sound, of this programme if one is wanted.
    pub(super) fn other_streams(&self, wanted: Option<u32>) -> Vec<String> {
        let is_of = |program: &Option<u32>| wanted.is_none() || *program == wanted;
        let mut named = Vec::new();
        for (_, stream) in self.others.iter().filter(|(program, _)| is_of(program)) {
            push(&mut named, stream.clone());
        }
        named
    }

    /// Marks the streams that are passed on by what NUT has no word for.
    pub(super) fn mark(&self, streams: &mut [ProbedStream]) {
        for (number, [visual, hearing]) in &self.impaired {
            if let Some(stream) = streams.iter_mut().find(|stream| stream.index == *number) {
                stream.disposition.visual_impaired = u8::from(*visual);
                stream.disposition.hearing_impaired = u8::from(*hearing);
            }
        }
    }

    /// Whether the input has this programme, as far as it is described.
    pub(super) fn has_program(&self, wanted: u32) -> bool {
        self.programs.iter().any(|(number, _)| *number == wanted)
    }

    fn add_error(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.errors.push_str(text);
        self.errors.push('\n');
        while self.errors.len() > MOST_ERRORS {
            let first = self.errors.find('\n').map_or(self.errors.len(), |end| end + 1);
            self.errors.drain(..first);
        }
    }
}

/// Takes all that a program says, until it ends.
pub(super) fn listen(mut stderr: impl Read, heard: &Mutex<Heard>) {
    let mut line: Vec<u8> = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(got @ 1..) = stderr.read(&mut piece) {
        for byte in &piece[..got] {
            if *byte == b'\n' || *byte == b'\r' {
                locked(heard).take(String::from_utf8_lossy(&line).trim_end());
                line.clear();
            } else if line.len() < MOST_LINE {
                line.push(*byte);
            }
        }
    }
    locked(heard).take(String::from_utf8_lossy(&line).trim_end());
}

/// `Could not find codec parameters for stream 1 (Audio: aac ([15]..), 0 channels): unspecified..`
fn unknown_stream(text: &str) -> Option<String> {
    let (number, what) =
        text.strip_prefix("Could not find codec parameters for stream ")?.split_once(" (")?;
    let (kind, codec) = what.split_once(": ")?;
    let kind = recorded_kind(kind)?;
    let codec = codec.split([' ', ',', ')', '(']).next().unwrap_or_default();
    Some(format!("{kind} stream {number} ({codec})"))
}

/// `New audio stream 0:2 at pos:..`, and since FFmpeg 6 `New audio stream with index 2 at pos:..`
fn later_stream(text: &str) -> Option<String> {
    let (kind, place) = text.strip_prefix("New ")?.split_once(" stream ")?;
    let kind = recorded_kind(kind)?;
    let place = place.strip_prefix("with index ").unwrap_or(place);
    let number = place.split(' ').next()?;
    let number = number.split_once(':').map_or(number, |(_, number)| number);
    Some(format!("{kind} stream {number}"))
}

/// `Stream #0:2[0x102](eng): Subtitle: dvb_subtitle ([6][0][0][0] / 0x0006)`, and of a codec that
/// FFmpeg does not know `Stream #0:3(eng): Data: none (tmcd / 0x64636D74)`.
fn other_stream(text: &str) -> Option<String> {
    let (place, what) = text.strip_prefix("Stream #")?.split_once(": ")?;
    let (kind, what) = what.split_once(": ")?;
    let kind = ["Subtitle", "Data", "Attachment"].into_iter().find(|known| *known == kind)?;
    let kind = kind.to_ascii_lowercase();
    let (_, number) = place.split_once(':')?;
    let number = number.split(['[', '(']).next()?;
    let language = place.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    let mut words = what.split([' ', ',', '(', ')']).filter(|word| !word.is_empty());
    let codec = match words.next()? {
        "none" => words.next().filter(|mark| !mark.contains('[')).unwrap_or("unknown"),
        codec => codec,
    };
    Some(match language.filter(|language| *language != "und") {
        Some(language) => format!("{kind} stream {number} ({codec}, {language})"),
        None => format!("{kind} stream {number} ({codec})"),
    })
}

/// `Stream #0:1: Audio: aac (LC), 44100 Hz, mono, fltp (default) (visual impaired)`
fn impaired_sound(text: &str) -> Option<(u32, [bool; 2])> {
    let (place, what) = text.strip_prefix("Stream #")?.split_once(": Audio: ")?;
    let number = place.split_once(':')?.1.split(['[', '(']).next()?.parse().ok()?;
    let marks = ["(visual impaired)", "(hearing impaired)"].map(|mark| what.contains(mark));
    marks.contains(&true).then_some((number, marks))
}

/// The name of a kind of stream that is recorded.
fn recorded_kind(kind: &str) -> Option<&'static str> {
    ["video", "audio"].into_iter().find(|known| known.eq_ignore_ascii_case(kind))
}

fn push(list: &mut Vec<String>, stream: String) {
    if list.len() < MOST_STREAMS && !list.contains(&stream) {
        list.push(stream);
    }
}

const WARNING: &str = "[warning]";
const INFO: &str = "[info]";

/// The bytes of errors, and those of a line, that are kept: more than a message has.
const MOST_ERRORS: usize = 8 << 10;
const MOST_LINE: usize = 4 << 10;
/// The streams that are named: an input may have any number of them.
const MOST_STREAMS: usize = 32;
/// The programmes that are named: more than a transponder has.
const MOST_PROGRAMS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_that_are_passed_over_are_named() {
        let said = "\
[mpegts @ 0x55b4] [warning] Could not find codec parameters for stream 1 (Audio: aac ([15][0][0]\
[0] / 0x000F), 0 channels): unspecified sample rate
Consider increasing the value for the 'analyzeduration' (3000000) and 'probesize' (5000000) options
[mpegts @ 0x55b4] [warning] Could not find codec parameters for stream 2 (Subtitle: dvb_teletext \
([6][0][0][0] / 0x0006)): unspecified size
[mpegts @ 0x55b4] [warning] Could not find codec parameters for stream 0 (Video: h264, none): \
unspecified size
[nut @ 0x55b4] [warning] Non-monotonous DTS in output stream 0:1; previous: 5, current: 4
    Last message repeated 3 times
[mpegts @ 0x55b4] [warning] New audio stream 0:2 at pos:675672 and DTS:7.37678s
[in#0/mpegts @ 0x55b4] [warning] New video stream with index 3 at pos:675672 and DTS:7.37678s
[mpegts @ 0x55b4] [warning] New audio stream 0:2 at pos:775672 and DTS:9.37678s
[mpegts @ 0x55b4] [warning] New data stream 0:4 at pos:675672 and DTS:7.37678s
[tcp @ 0x55b4] [error] Connection to tcp://10.0.0.1:9 failed: Connection refused
[fatal] tcp://10.0.0.1:9: Connection refused
and more of it";
        for piece in [1, 7, said.len()] {
            let heard = Mutex::new(Heard::default());
            let bytes: Vec<&[u8]> = said.as_bytes().chunks(piece).collect();
            listen(std::io::Cursor::new(bytes.concat()), &heard);
            let Heard { errors, unknown, later, .. } = heard.into_inner().unwrap();
            let not_found = "whose form was not found in time";
            assert_eq!(
                unknown,
                [
                    format!("audio stream 1 (aac), {not_found}"),
                    format!("video stream 0 (h264), {not_found}")
                ]
            );
            assert_eq!(
                later,
                ["audio stream 2, which began later", "video stream 3, which began later"]
            );
            assert_eq!(
                errors,
                "Connection to tcp://10.0.0.1:9 failed: Connection refused\n\
                 tcp://10.0.0.1:9: Connection refused\nand more of it\n"
            );
        }
    }

    #[test]
    fn programmes_are_named_as_the_input_is_described() {
        let said = "\
[info] Input #0, mpegts, from 'two.ts':
[info]   Program 1\x20
[info]     Metadata:
[info]       service_name    : One: first
[info]       service_provider: FFmpeg
[info]   Stream #0:0[0x100]: Video: h264 (High) ([27][0][0][0] / 0x001B), 320x180
[info]   Stream #0:2[0x102](eng): Subtitle: dvb_subtitle ([6][0][0][0] / 0x0006)
[info]   Stream #0:6[0x106](eng): Audio: mp2 (visual impaired)
[info]   Program 7\x20
[info]   Stream #0:3[0x103](und): Data: klv (KLVA / 0x41564C4B)
[info]   No Program
[info]   Stream #0:4(deu): Data: none (tmcd / 0x64636D74), 0 kb/s
[info]   Stream #0:5: Data: none ([5][0][0][0] / 0x0005)
[info] Output #0, nut, to 'pipe:1':
[info]   Stream #0:1: Subtitle: subrip
[info]   Stream #0:2: Audio: aac (LC) ([255][0][0][0] / 0x00FF), mono, fltp (visual impaired)
[info]   Stream #0:3(eng): Audio: aac (LC), fltp (default) (hearing impaired)
[info]   Stream #0:4: Audio: aac (LC), fltp (comment)
[error] it fails
[error]
[info]   Program x
";
        let heard = Mutex::new(Heard::default());
        listen(std::io::Cursor::new(said), &heard);
        let heard = heard.into_inner().unwrap();
        assert_eq!(heard.program_names(), ["1 (One: first)", "7"]);
        assert_eq!([1, 7, 2].map(|wanted| heard.has_program(wanted)), [true, true, false]);
        assert_eq!(heard.errors, "it fails\n");
        assert_eq!(heard.impaired, [(2, [true, false]), (3, [false, true])]);
        let others = [
            "subtitle stream 2 (dvb_subtitle, eng)",
            "data stream 3 (klv)",
            "data stream 4 (tmcd, deu)",
            "data stream 5 (unknown)",
        ];
        assert_eq!(heard.other_streams(None), others);
        assert_eq!(heard.other_streams(Some(7)), [others[1]]);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let heard = Mutex::new(Heard::default());
        let long = format!("[error] {}\n", "x".repeat(5000)).repeat(9);
        let many = (0..100).map(|i| format!("[warning] New audio stream 0:{i} at pos:1\n"));
        listen((long + &many.collect::<String>()).as_bytes(), &heard);
        let heard = heard.into_inner().unwrap();
        assert!(heard.errors.len() <= MOST_ERRORS && heard.errors.len() > MOST_LINE / 2);
        assert_eq!(heard.later.len(), MOST_STREAMS);
    }
}
