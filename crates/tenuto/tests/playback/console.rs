//! The console as its users have it: in a browser, with a server that they can also ask otherwise.

use crate::devtools::Browser;
use crate::program::{Served, TestDir};
use serde_json::{Value, json};

/// Number of films in the store: enough for the filter to be shown.
const TITLES: usize = 12;

const FILM: &str = "-f lavfi -i testsrc2=s=320x180:r=25:d=30 -f lavfi -i sine=440:d=30 -c:v libx264 \
    -preset ultrafast -g 25 -pix_fmt yuv420p -c:a aac";

#[test]
fn the_console_lists_plays_and_leaves() {
    let dir = TestDir::with_store_of(128);
    let film = dir.encode("film.mp4", &FILM.split_whitespace().collect::<Vec<_>>());
    for number in 0..TITLES {
        dir.ingest(&film, &format!("film {number}"));
    }
    let undecodable = "-f lavfi -i testsrc2=s=64x64:r=25:d=1 -c:v prores_ks";
    let undecodable = dir.encode("prores.mov", &undecodable.split(' ').collect::<Vec<_>>());
    dir.ingest(&undecodable, "prores");
    dir.write("notes.txt", "no film");
    dir.ok("ingest a.store notes.txt --as file");
    let server = dir.serve("");
    let mut page = Browser::open(&dir, &server.url("/console/"));

    page.wait_for(&format!("document.querySelectorAll('#titles tr').length === {}", TITLES + 2));
    let row = |name: &str| {
        format!(
            "[...document.querySelectorAll('#titles tr')].find(it => it.cells[0].innerText === '{name}')"
        )
    };
    assert_eq!(page.eval(&format!("{}.cells[1].innerText", row("film 3"))), "0:30");
    assert_eq!(page.eval(&format!("{}.querySelector('button')", row("notes (file)"))), Value::Null);

    // What is focused stays while the numbers are drawn anew.
    page.eval(&format!(
        "window.focused = {}.querySelector('button'), focused.focus()",
        row("film 3")
    ));
    let uptime = page.eval("document.getElementById('state').innerText");
    page.wait_for(&format!("document.getElementById('state').innerText !== {uptime}"));
    assert_eq!(page.eval("document.activeElement === focused && focused.isConnected"), true);

    let filter = "document.getElementById('filter')";
    page.eval(&format!("{filter}.value = 'FILM 1', {filter}.dispatchEvent(new Event('input'))"));
    let shown = "[...document.querySelectorAll('#titles tr:not([hidden])')].map(it => it.cells[0].innerText)";
    assert_eq!(page.eval(shown), json!(["film 1", "film 10", "film 11"]));

    page.eval(&format!("{}.querySelector('button').click()", row("film 10")));
    page.wait_for("document.getElementById('video').currentTime > 1");
    assert_eq!(page.eval("document.getElementById('playing').innerText"), "film 10");
    page.wait_for(&format!("{}.cells[3].innerText === '1'", row("film 10")));
    assert_eq!(reserving(&server), 1);

    // A telephone, held upright, does not scroll sideways.
    let telephone = json!({ "width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true });
    page.call("Emulation.setDeviceMetricsOverride", &telephone);
    assert_eq!(page.eval("document.documentElement.scrollWidth"), 390);

    page.eval(&format!("{}.querySelector('button').click()", row("prores")));
    page.wait_for("document.getElementById('playing').innerText.startsWith('This browser cannot play prores')");
    assert_eq!(page.complaints, Vec::<String>::new());

    // The place of a browser that is closed is free for the next viewer at once.
    page.eval(&format!("{}.querySelector('button').click()", row("film 11")));
    page.wait_for("document.getElementById('video').currentTime > 1");
    drop(page);
    let start = std::time::Instant::now();
    while reserving(&server) > 0 {
        assert!(start.elapsed().as_secs() < 10, "the place of a browser that is gone is not free");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// How many sessions hold a reservation that no newcomer can be given.
fn reserving(server: &Served) -> u64 {
    let status: Value = serde_json::from_slice(&server.get("/status")).expect("JSON");
    let count = |name: &str| status[name].as_u64().expect("a count");
    count("active") - count("revocable")
}
