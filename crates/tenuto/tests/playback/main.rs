//! What comes out is what went in: films of every codec and container that Tenuto takes, decoded
//! again from HLS, DASH, progressive MP4, RTSP and an export, by players that are not ours.
//!
//! Black box: the `tenuto` program, FFmpeg, GStreamer, mpv, VLC, and hls.js, dash.js and Shaka in
//! Chromium. Films are made here with FFmpeg, small enough that the whole runs in minutes. Run one
//! row again with `cargo test -p tenuto --test playback NAME`.

mod chromium;
mod codecs;
mod colours;
mod dash;
mod desktop;
mod directed;
mod encrypted;
mod files;
mod films;
mod framemd5;
mod growing;
mod gstreamer;
mod multicast;
mod nginx;
mod odd;
mod origin;
mod parts;
mod received;
mod rtsp;
mod rules;
mod subtitles;
mod thumbnails;
mod transport;

#[path = "../cli/program.rs"]
#[expect(dead_code, reason = "the tests of the command line use more of it")]
mod program;
