//! Headless Chromium under control of a test: its DevTools protocol over two pipes, in which each
//! message is a JSON object that a zero byte ends.

use crate::program::TestDir;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    commands: File,
    messages: Receiver<Value>,
    last_id: u64,
    session: Value,
    /// Exceptions of scripts, and errors that the browser itself logs, since the page was opened.
    pub(crate) complaints: Vec<String>,
}

impl Browser {
    /// Opens a page and waits until it has loaded.
    pub(crate) fn open(dir: &TestDir, url: &str) -> Self {
        let [commands, messages] = [dir.at("commands"), dir.at("messages")];
        let made = Command::new("mkfifo").args([&commands, &messages]).status();
        assert!(made.expect("mkfifo runs").success(), "two pipes in the test's folder");
        // A shell can give a program the descriptors 3 and 4, where the browser expects its pipes.
        let line = format!(
            "exec chromium --headless --no-sandbox --disable-gpu --no-first-run --mute-audio \
             --disable-background-networking --disable-component-update --disable-sync \
             --user-data-dir={} --remote-debugging-pipe 3<{commands} 4>{messages}",
            dir.at("profile")
        );
        let child = Command::new("sh")
            .args(["-c", &line])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh runs");
        let (sender, received) = channel();
        let commands = File::options().write(true).open(&commands).expect("the browser reads");
        let messages = File::open(&messages).expect("the browser writes");
        std::thread::spawn(move || {
            for message in BufReader::new(messages).split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).expect("a message is JSON");
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let (messages, session, complaints) = (received, Value::Null, Vec::new());
        let mut browser = Self { child, commands, messages, last_id: 0, session, complaints };
        let page = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let page = json!({ "targetId": page["targetId"], "flatten": true });
        browser.session = browser.call("Target.attachToTarget", &page)["sessionId"].take();
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.call(domain, &json!({}));
        }
        browser.call("Page.navigate", &json!({ "url": url }));
        browser.wait_for("document.readyState === 'complete'");
        browser
    }

    /// Calls a method of the protocol, on the page as soon as there is one.
    pub(crate) fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": parameters });
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        let bytes = [message.to_string().as_bytes(), &[0]].concat();
        self.commands.write_all(&bytes).expect("the browser takes commands");
        loop {
            let mut answer = self.messages.recv_timeout(PATIENCE).unwrap_or_else(|error| {
                panic!("{method}: chromium does not answer ({error}); is it installed?")
            });
            self.note(&answer);
            if answer["id"] == self.last_id {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
        }
    }

    fn note(&mut self, message: &Value) {
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => {
                self.complaints.push(message["params"]["exceptionDetails"].to_string());
            }
            Some("Log.entryAdded") if message["params"]["entry"]["level"] == "error" => {
                self.complaints.push(message["params"]["entry"].to_string());
            }
            _ => {}
        }
    }

    /// The value of a JavaScript expression in the page.
    #[track_caller]
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let parameters = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": true,
            // As if the user had just clicked: without it a page may not play sound.
            "userGesture": true,
        });
        let mut answer = self.call("Runtime.evaluate", &parameters);
        let failed = &answer["exceptionDetails"];
        assert!(failed.is_null(), "{expression}: {failed}");
        answer["result"]["value"].take()
    }

    /// Waits until a JavaScript expression is true.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, expression: &str) {
        let start = Instant::now();
        while self.eval(expression) != true {
            let complaints = &self.complaints;
            assert!(start.elapsed() < PATIENCE, "never true: {expression}; {complaints:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const PATIENCE: Duration = Duration::from_secs(60);
