//! nginx with the demo's titles, as a comparison: HLS files of FFmpeg on ext4, on a disk of the
//! same model, with as much memory for the page cache as Tenuto has for its buffers.
//!
//! ```text
//!   footage ── ffmpeg -c copy ──▶ 0/index.m3u8 ... on ext4 ── loop device ── tenuto disk emulate
//!                                     │
//!                             nginx in a memory control group ──▶ the same viewers
//! ```
//!
//! It needs root, FUSE, nginx and a control group for memory. Where one is missing, `prepare` says
//! which. All that is started or mounted here ends with the value that [`prepare`] returns.

use super::Demo;
use super::children::{Call, Problem, Running, check, write};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A running nginx and the addresses of its titles.
pub(crate) struct Nginx {
    urls: Vec<String>,
    // Fields are dropped in this order: nothing uses what ends after it.
    _server: Running,
    _memory: MemoryGroup,
    _mounted: Mount,
    _disk: EmulatedDisk,
}

impl Nginx {
    /// The titles' playlists, in the order in which Tenuto lists the same titles.
    pub(crate) fn urls(&self) -> &[String] {
        &self.urls
    }
}

/// Packages `files` on a disk of `model` and starts nginx on them. `titles` is the response of
/// Tenuto's `/titles`, whose order counts for who chooses what.
pub(crate) fn prepare(
    demo: &Demo,
    files: &[PathBuf],
    titles: &Value,
    model: Option<&str>,
) -> Result<Nginx, Problem> {
    let model = model.ok_or("it is compared on a disk model only (AS_DISK)")?;
    if !rustix::process::geteuid().is_root() {
        return Err("it needs root, for a file system on an emulated disk".to_owned());
    }
    if !on_path("nginx") {
        return Err("it is not installed (apt-get install nginx-light)".to_owned());
    }
    // Absolute, because nginx takes relative paths to be below its prefix.
    let folder = std::path::absolute(demo.folder.join("nginx"))
        .map_err(|error| format!("cannot find the directory of nginx: {error}"))?;
    let root = folder.join("files");
    std::fs::create_dir_all(&root)
        .map_err(|error| format!("cannot create {}: {error}", root.display()))?;
    let memory = MemoryGroup::new(super::MEMORY_MIB + BESIDE_MIB)?;
    println!("nginx: the same titles as HLS files on ext4, on an emulated {model}");
    let disk = EmulatedDisk::emulate(demo, &folder, files, model)?;
    let device = &disk.device;
    let run = |call: Call| call.output(&demo.log(), &demo.stop);
    run(Call::new("mkfs.ext4").args(["-q", "-F", device]))?;
    let mounted = Mount::new(device, &root)?;
    let names = packaged(files, titles);
    for (number, file) in names.iter().enumerate() {
        run(hls(file, &root.join(number.to_string()))?)?;
    }
    // What is mounted again has nothing in the page cache.
    drop(mounted);
    run(demo.call("disk").arg("stats").arg(&disk.image.0).args(["--delay", "on"]))?;
    let mounted = Mount::new(device, &root)?;
    let port = free_port()?;
    let config = folder.join("nginx.conf");
    write(&config, &configuration(&folder, port))?;
    let server = Call::new("sh")
        .args(["-c", r#"echo $$ >"$0" && exec nginx -p "$1" -c "$2""#])
        .arg(memory.processes())
        .arg(&folder)
        .arg(&config)
        .start(&folder.join("nginx.log"))?;
    wait_for(port, &demo.stop)?;
    let urls = (0..names.len()).map(|title| format!("http://127.0.0.1:{port}/{title}/index.m3u8"));
    Ok(Nginx {
        urls: urls.collect(),
        _server: server,
        _memory: memory,
        _mounted: mounted,
        _disk: disk,
    })
}

/// The files in the order of Tenuto's titles, whose names are those of the files without endings. A
/// file that Tenuto refused has no title.
fn packaged<'a>(files: &'a [PathBuf], titles: &Value) -> Vec<&'a Path> {
    let names = titles["titles"].as_array().into_iter().flatten();
    names
        .filter_map(|title| title["name"].as_str())
        .filter_map(|name| files.iter().find(|file| file.file_stem() == Some(name.as_ref())))
        .map(PathBuf::as_path)
        .collect()
}

/// An emulated disk as a block device.
struct EmulatedDisk {
    device: String,
    _running: Running,
    // Removed after the program that has it open.
    image: Image,
}

impl EmulatedDisk {
    /// Starts a disk that is as fast as its backing file until it is filled.
    fn emulate(
        demo: &Demo,
        folder: &Path,
        files: &[PathBuf],
        model: &str,
    ) -> Result<Self, Problem> {
        let bytes: u64 = files.iter().flat_map(|file| file.metadata()).map(|data| data.len()).sum();
        let size = format!("{}MiB", ((bytes + bytes / 5) >> 20) + super::SPARE_MIB);
        let image = Image(folder.join("disk.img"));
        // One of another size may be left of a demo that was killed.
        let _ = std::fs::remove_file(&image.0);
        let call = demo
            .call("disk")
            .args(["emulate", model, "--size", &size, "--attach", "--no-delay", "--backing"])
            .arg(&image.0);
        let log = folder.join("disk.log");
        let mut running = call.start(&log)?;
        let mut lines = BufReader::new(running.stdout()).lines().map_while(Result::ok);
        let line = lines.find(|line| line.starts_with("block device"));
        let device = line.and_then(|line| line.split_whitespace().next_back().map(str::to_owned));
        // A disk that could not be made has ended, with the reason in its log.
        let Some(device) = device else { return Err(call.failure(None, &log)) };
        // Reads to the end: an emulated disk reports when it ends.
        std::thread::spawn(move || lines.count());
        Ok(Self { device, _running: running, image })
    }
}

/// A file that is removed at the end.
struct Image(PathBuf);

impl Drop for Image {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The call that packages a file as HLS with fragmented MP4, without encoding.
fn hls(file: &Path, folder: &Path) -> Result<Call, Problem> {
    std::fs::create_dir_all(folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    Ok(Call::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-i"])
        .arg(file)
        .args(["-map", "0:v:0", "-map", "0:a:0?", "-c", "copy", "-f", "hls"])
        .args(["-hls_time", "4", "-hls_playlist_type", "vod", "-hls_segment_type", "fmp4"])
        .arg(folder.join("index.m3u8")))
}

fn configuration(folder: &Path, port: u16) -> String {
    let folder = folder.display();
    format!(
        "worker_processes 2; daemon off; user root; pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 4096; }}
http {{
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  types {{ application/vnd.apple.mpegurl m3u8; video/mp4 mp4 m4s; }}
  access_log off; sendfile on; tcp_nopush on;
  server {{ listen 127.0.0.1:{port} backlog=4096; root {folder}/files; }}
}}
"
    )
}

/// A port that nobody listens on.
fn free_port() -> Result<u16, Problem> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|error| format!("no free port: {error}"))
}

/// Waits until somebody listens on `port`.
fn wait_for(port: u16, stop: &AtomicBool) -> Result<(), Problem> {
    let deadline = Instant::now() + START;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        check(stop)?;
        if Instant::now() > deadline {
            return Err("nginx did not start; target/demo/nginx/nginx.log says why".to_owned());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A control group with a limit of memory, in which the page cache of its processes counts.
struct MemoryGroup {
    folder: PathBuf,
}

impl MemoryGroup {
    fn new(limit_mib: u64) -> Result<Self, Problem> {
        let name = format!("tenuto-demo-{}", std::process::id());
        // Version 1 has a hierarchy for memory; in version 2 the root passes the controller on.
        let hierarchies =
            [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        let mut problem = "the kernel has none".to_owned();
        for (root, file) in hierarchies {
            let group = Self { folder: Path::new(root).join(&name) };
            if let Err(error) = std::fs::create_dir(&group.folder) {
                problem = error.to_string();
                continue;
            }
            match std::fs::write(group.folder.join(file), (limit_mib << 20).to_string()) {
                Ok(()) => return Ok(group),
                Err(error) => problem = error.to_string(),
            }
        }
        Err(format!("it needs a control group for memory: {problem}"))
    }

    /// The file that takes the numbers of processes.
    fn processes(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // The kernel removes a group only when its last process is gone for good.
        for _ in 0..20 {
            if std::fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// A mounted file system.
struct Mount {
    at: PathBuf,
}

impl Mount {
    fn new(device: &str, at: &Path) -> Result<Self, Problem> {
        let at = at.to_owned();
        rustix::mount::mount(device, &at, "ext4", rustix::mount::MountFlags::NOATIME, None)
            .map_err(|error| format!("cannot mount {device}: {error}"))?;
        Ok(Self { at })
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // If something still uses it, the emulated disk unmounts it at its end.
        let _ = rustix::mount::unmount(&self.at, rustix::mount::UnmountFlags::empty());
    }
}

/// Memory of nginx's processes beside the page cache.
const BESIDE_MIB: u64 = 32;

/// Time for nginx to start.
const START: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn titles_come_in_the_order_of_tenuto_without_those_it_refused() {
        let files = ["media/rain.mkv", "media/noise.mp4", "media/broken.mkv"].map(PathBuf::from);
        let titles = json!({ "titles": [{ "name": "noise" }, { "name": "rain" }] });
        assert_eq!(
            packaged(&files, &titles),
            [Path::new("media/noise.mp4"), Path::new("media/rain.mkv")]
        );
    }
}
