//! The codecs that are taken in, and which container holds each so that players find it again.
//!
//! The list is an allow-list by FFmpeg's names. Every codec in it was written into the container by
//! FFmpeg and found there again by FFmpeg's own reader under the same name; FFmpeg writes many
//! others with a tag that no reader knows. docs/reference/codecs.md contains the same list.

use units::Reason;

/// The containers in which players find a codec again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// MP4 and QuickTime.
    Both,
    /// MP4, not QuickTime.
    Mp4,
    /// QuickTime, not MP4.
    QuickTime,
}

/// The containers for a codec by FFmpeg's name; `None` if the codec is not taken in.
pub(super) fn holder(codec: &str) -> Option<Holder> {
    let found = LISTS.iter().find(|(_, video, audio)| {
        [video, audio].iter().any(|list| list.split_whitespace().any(|name| name == codec))
    });
    found.map(|(holder, ..)| *holder)
}

/// MP4 if it can hold all codecs, else QuickTime if it can, else the reason for which neither can.
pub(super) fn container<'a>(codecs: impl Iterator<Item = &'a str>) -> Result<&'static str, Reason> {
    let (mut needs_mov, mut needs_mp4) = (None, None);
    for codec in codecs {
        match holder(codec) {
            Some(Holder::QuickTime) => needs_mov = needs_mov.or(Some(codec)),
            Some(Holder::Mp4) => needs_mp4 = needs_mp4.or(Some(codec)),
            _ => {}
        }
    }
    match (needs_mov, needs_mp4) {
        (None, _) => Ok("mp4"),
        (Some(_), None) => Ok("mov"),
        (Some(mov), Some(mp4)) => {
            let sound = match mp4 {
                "av1" | "vp9" => "flac",
                "flac" | "truehd" => "pcm_s24le",
                _ => "aac",
            };
            Err(Reason::new(
                format!(
                    "only MP4 holds its {mp4} and only QuickTime its {mov}, so that no file holds \
                     both"
                ),
                format!(
                    "convert the sound first, for instance with `ffmpeg -i FILE -c:v copy -c:a \
                     {sound} NEW.mkv`, or take it in with --as file"
                ),
            ))
        }
    }
}

/// Per container the video and the audio codecs. LATM is in QuickTime on the way from FFmpeg only:
/// its framing is removed, and the track is plain AAC then.
pub(super) const LISTS: &[(Holder, &str, &str)] = &[
    (
        Holder::Both,
        "h264 hevc mpeg1video mpeg2video mpeg4 mjpeg vc1",
        "aac ac3 alac dts eac3 mp2 mp3 vorbis",
    ),
    (Holder::Mp4, "av1 vp9", "flac opus truehd"),
    (
        Holder::QuickTime,
        "012v 8bps agm amv arbc asv1 asv2 aura aura2 avrp avui ayuv cavs cfhd cinepak cljr cllc \
         cscd dnxhd dpx dvvideo dxv exr ffv1 ffvhuff fic flashsv flv1 fraps g2m h261 h263 \
         h263i hap hq_hqa hqx huffyuv imm4 imm5 indeo2 indeo3 indeo4 indeo5 jpeg2000 jpegls \
         lagarith ljpeg loco magicyuv mimic mjpegb msmpeg4v1 msmpeg4v2 msmpeg4v3 msrle mss1 mss2 mszh msvideo1 mvha mwsc \
         notchlc pixlet png prores prosumer qtrle r10k r210 rasc rawvideo rpza rscc rv40 scpr \
         screenpresso sgi sheervideo smc snow speedhq svq1 svq3 targa targa_y216 tdsc theora tiff \
         truemotion1 truemotion2 tscc tscc2 ulti utvideo v210 v308 v408 v410 vble vcr1 vixl vmnc \
         vp3 vp4 vp5 vp6 vp6a vp6f vp7 wmv1 wmv2 wmv3 wnv1 xan_wc4 y41p ylc yuv4 zerocodec zlib \
         zmbv",
        "aac_latm adpcm_ima_qt amr_nb amr_wb evrc gsm ilbc mace3 mace6 nellymoser pcm_alaw \
         pcm_f32be pcm_f32le pcm_f64be pcm_f64le pcm_mulaw pcm_s16be pcm_s16le pcm_s24be \
         pcm_s24le pcm_s32be pcm_s32le pcm_s8 pcm_u8 qcelp qdm2 qdmc speex",
    ),
];

/// Layouts of raw pictures that FFmpeg marks in QuickTime and recognises again, with the bits of a
/// pixel.
pub(super) const RAW_IN_MOV: &[(&str, u64)] = &[
    ("abgr", 32),
    ("argb", 32),
    ("ayuv64le", 64),
    ("bgr24", 24),
    ("bgra", 32),
    ("gray16be", 16),
    ("rgb24", 24),
    ("rgb48be", 48),
    ("rgb555be", 16),
    ("rgb555le", 16),
    ("rgb565le", 16),
    ("rgba", 32),
    ("uyvy422", 16),
    ("yuv444p", 24),
    ("yuyv422", 16),
];

#[cfg(test)]
mod tests {
    use super::*;
    use units::Hinted;

    #[test]
    fn the_reference_names_the_codecs_that_are_taken_in() {
        let page = include_str!("../../../../docs/reference/codecs.md");
        let squeezed = page.split_whitespace().collect::<Vec<_>>().join(" ");
        for (_, video, audio) in LISTS {
            for list in [video, audio] {
                let names: Vec<_> = list
                    .split_whitespace()
                    .filter(|name| *name != "aac_latm")
                    .map(|name| format!("`{name}`"))
                    .collect();
                let wanted = names.join(", ");
                assert!(squeezed.contains(&wanted), "codecs.md lacks this list:\n{wanted}");
            }
        }
    }

    #[test]
    fn the_command_for_two_containers_makes_one_suffice() {
        for (codecs, converted) in [
            (["vp9", "pcm_s16le"], "flac"),
            (["ffv1", "flac"], "pcm_s24le"),
            (["theora", "opus"], "aac"),
        ] {
            let reason = container(codecs.into_iter()).unwrap_err().one_line();
            assert!(reason.contains(&format!("-c:a {converted} ")), "{reason}");
            assert!(container([codecs[0], converted].into_iter()).is_ok(), "{reason}");
        }
    }

    #[test]
    fn a_codec_has_one_holder() {
        let mut names: Vec<&str> =
            LISTS.iter().flat_map(|(_, v, a)| [*v, *a]).flat_map(str::split_whitespace).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for unknown in ["ape", "vp8", "wmav2", "pcm_u16le", "tta", ""] {
            assert_eq!(holder(unknown), None, "{unknown}");
        }
    }
}
