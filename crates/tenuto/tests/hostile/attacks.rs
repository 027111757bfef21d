//! What a stranger, or another user of the machine, can try, and what bounds it.
//!
//! Each file of tests is below `crates/`; a test of this file checks that all of them exist.
//!
//! | attack | bound | test |
//! |---|---|---|
//! | a copy of a store is served, or named in a command, while the original is served | the socket belongs to one living server, and commands compare the file | `tenuto/tests/hostile/attacks.rs`: `a_copy_of_a_served_store_is_never_mistaken_for_it` |
//! | the control socket is removed or replaced, or its directory is | SIGTERM does not use the path | `tenuto/tests/hostile/attacks.rs`: `a_server_stops_whatever_became_of_its_control_socket` |
//! | a directory for control sockets is made beforehand, for all to write | refused by servers and commands | `tenuto/tests/hostile/attacks.rs`: `a_directory_of_sockets_that_others_may_write_is_refused` |
//! | a server is started with umask 0 | the socket's mode is 0600 | `tenuto/tests/hostile/attacks.rs`: `the_control_socket_is_its_users_alone` |
//! | another user connects to the control socket | root and the server's user are served | `tenuto/tests/hostile/attacks.rs`: `another_user_gives_the_server_no_commands` |
//! | garbage is sent to the control socket | an error, and the next command is served | `tenuto/tests/hostile/stores.rs`: `garbage_on_the_control_socket_is_answered_and_the_next_command_is_served` |
//! | manifests are requested and nothing is played | 16 such sessions for each client, each for 15 s | `tenuto/tests/hostile/attacks.rs`: `ghosts_keep_their_own_client_out_and_no_other_viewer` |
//! | many viewers are begun while the operator's service is slow or hangs (`--auth-request`), to keep others out or to be let in without an answer | 4096 wait, 64 of one client, each 2 s; the others are refused at once, whatever is configured for no answer; nobody else waits | `server/src/auth_request/questions/tests.rs`: `few_of_one_client_and_few_in_all_wait_and_all_others_are_told_at_once`; `server/tests/serve/authorizations.rs`: `a_service_that_hangs_holds_up_nobody_else` |
//! | the operator's service answers garbage, without an end, a redirect, or nothing | no answer; 16 KiB, no redirect is followed | `server/tests/serve/authorizations.rs`: `without_a_usable_answer_a_viewer_is_refused_for_now_or_admitted_as_configured` |
//! | media is fetched under the addresses for caches | FILLS at a time; with `--tokens` for a cache's token only | `server/tests/serve/origin.rs`: `fills_beyond_the_limit_wait_or_are_refused_and_viewers_are_not`, `with_tokens_only_the_cache_s_own_opens_the_addresses_for_caches` |
//! | a file is asked for under many addresses, so that a cache fills up with copies | 404 but with folders of its title in front | `http-service/src/cache_path.rs`: `titles_are_in_the_folders_of_the_address` |
//! | thousands of sessions are begun and abandoned | their reservations go to whoever needs them | `tenuto/tests/hostile/attacks.rs`: `the_abandoned_sessions_of_others_keep_no_viewer_out` |
//! | one client opens thousands of connections | 1,000 for each client, told up to twice as many | `server/tests/serve/hostile.rs`: `connections_above_a_clients_limit_are_answered_with_429_and_then_closed` |
//! | all clients together open more | 503, and room again when they are gone | `tenuto/tests/hostile/crowds.rs`: `a_flood_of_connections_is_told_so_and_leaves_room_when_it_is_gone` |
//! | a head is sent slowly | 10 s | `server/tests/serve/hostile.rs`: `a_slow_request_head_is_answered_with_408` |
//! | a TLS handshake is made slowly, or is none | 10 s from the connection on; garbage ends its connection, plain HTTP is told | `server/tests/serve/tls.rs`: `a_slow_handshake_is_ended_and_garbage_and_plain_http_are_answered` |
//! | HTTP/2: streams are begun and reset at once, by the thousand (CVE-2023-44487) | 20 of which nothing was seen, 200 before their answers, then one each 50 ms; the connection ends | `server/src/http2/tests.rs`: `a_thousand_rapid_resets_end_the_connection_and_leave_nothing`; `server/tests/serve/http2.rs`: `rapid_resets_end_the_connection_and_no_other` |
//! | HTTP/2: header lists that are endless, too long, or short and expand; frames against the rules | 16 KiB; the connection ends | `server/src/http2/tests.rs`: `frames_that_only_cost_memory_or_time_end_their_connection` |
//! | HTTP/2: pings and settings whose answers are not read | two chunks of 64 KiB wait, then nothing is read | `server/src/http2/tests.rs`: `answers_to_pings_and_settings_do_not_pile_up` |
//! | HTTP/2: a stream is not read, or its window is never opened | 16 KiB in 20 s, as of a connection; its buffers are free, other streams go on | `server/src/http2/tests.rs`: `a_stream_that_is_not_read_does_not_hold_up_another_one`; `server/tests/serve/http2.rs`: `a_stream_that_is_not_read_ends_alone` |
//! | HTTP/2: one client begins requests without end over few connections | 100 for each connection; each counts as a connection of the client; a connection above a limit has 10 s for its first request, and ends with the answer | `server/tests/serve/http2.rs`: `connections_above_a_limit_are_told_so_in_their_protocol_and_ended`; `server/src/http2/tests.rs`: `more_streams_than_allowed_are_refused_alone`; `server/tests/serve/http2.rs`: `streams_count_as_connections_of_their_client` |
//! | HTTP/2: connections without requests | 10 s for the first, then 60 s | `server/tests/serve/http2.rs`: `idle_and_silent_connections_are_ended` |
//! | HTTP/2: bodies that are sent ahead | 1 MiB for each connection | `server/src/http2/tests.rs`: `bodies_of_requests_wait_for_the_operation_in_a_bounded_window` |
//! | a response over TLS is not read | 130 KiB of records, the rest is not encrypted | `server/src/tls/stream/tests.rs`: `every_byte_arrives_once_and_sends_are_reported_in_order_with_bounded_memory` |
//! | requests and sessions are to fill the memory, or slow the server, by way of a collector (`--otlp`) | 2048 records wait, texts are cut after 1 KiB, nothing waits for it; a `traceparent` that is not valid is ignored | `server/src/telemetry/mod.rs`: `records_beyond_the_queue_are_dropped_and_counted_and_nothing_waits`; `server/src/telemetry/context.rs`: `a_traceparent_is_taken_as_w3c_has_it_and_ignored_otherwise` |
//! | a server is put on a public address without thinking | refused without TLS and tokens | `server/tests/serve/tls.rs`: `a_public_address_needs_tls_and_tokens_or_the_word` |
//! | a response is read by the byte | 16 KiB in 20 s | `server/tests/serve/hostile.rs`: `a_viewer_that_takes_a_few_bytes_from_time_to_time_is_disconnected` |
//! | a response is not read | its buffers are free again | `server/tests/serve/hostile.rs`: `a_viewer_that_stops_reading_is_disconnected_and_its_memory_is_released` |
//! | malformed heads, requests hidden in bodies (CL and TE, folded lines, bare CR, NUL) | refused, and the connection is closed | `server/tests/serve/hostile.rs`: `a_malformed_request_gets_its_error_and_the_next_client_is_served`; `server/src/http/request.rs`: `each_request_head_gets_its_status` |
//! | tokens that are forged, changed, expired, of another title or client, or signed with a public key | 401 or 403 | `server/src/access/tests.rs`: `each_token_is_allowed_or_denied_for_its_reason`, `a_changed_token_is_denied_wherever_it_was_changed`, `keys_of_an_identity_provider_verify_and_are_never_taken_for_secrets`; `server/tests/serve/tokens.rs`: `titles_list_and_views_are_opened_by_the_tokens_that_allow_them` |
//! | a token has names that fill memory and addresses | 401 above 255 bytes | `server/src/access/tests.rs`: `each_token_is_allowed_or_denied_for_its_reason` |
//! | questions in the name of a director, with the address of another client | refused without the secret of the cluster | `server/tests/serve/directed.rs`: `questions_that_are_no_directors_are_refused` |
//! | parts of titles are asked for in the name of a node | refused without the secret of the cluster, or when expired; eight at a time | `server/tests/serve/peers.rs`: `parts_are_for_nodes_of_the_cluster_only`; `engine/src/tests/fills.rs`: `fills_for_other_nodes_are_bounded_and_counted_apart_from_those_of_caches` |
//! | tickets that are forged, expired, of another session or title | 403, and nothing is reserved | `director/src/ticket.rs`: `a_ticket_is_valid_until_it_expires_and_as_it_was_signed`; `server/tests/serve/directed.rs`: `tickets_that_are_not_for_a_request_open_nothing` |
//! | a stranger looks at a director's nodes, numbers and titles | with `--tokens` an operator's token; on a public address that, or `--insecure` | `director/tests/service.rs`: `what_is_shown_needs_a_token_where_there_is_a_check`; `server/src/exposure.rs`: `a_director_is_refused_where_strangers_reach_it` |
//! | a director gets garbage, slow heads, slow readers | refused; 10 s for a head | `director/tests/service.rs`: `garbage_is_refused_and_slow_clients_hold_nobody_up` |
//! | a director's RTSP port gets garbage, giant messages, tunnels, requests for no title | refused, and no node is asked; 10 s for a message, connections are counted with those of HTTP | `director/tests/service.rs`: `what_is_no_request_for_a_title_reserves_nothing`; `rtsp-message/src/message.rs`: `any_bytes_are_taken` |
//! | a field of a player's RTSP is to become one of the director's question | the number in it alone is asked, and a token without line ends | `director/tests/service.rs`: `a_player_of_rtsp_is_sent_to_the_node_that_has_reserved` |
//! | RTSP with the ticket of a director that is forged, expired, of another title, or in use | 403 or 454, and nothing is reserved | `server/tests/serve/directed_rtsp.rs`: `tickets_without_a_reservation_of_the_title_are_refused` |
//! | the file of a cluster's secret is readable by all | refused | `director/src/secret.rs`: `a_secret_of_a_file_is_not_for_all_users_and_may_change` |
//! | titles are removed, sessions ended over the admin API | an operator's token, also from this machine; pages of other origins are allowed nothing | `server/tests/serve/admin.rs`: `the_api_is_the_operators_alone` |
//! | the sessions of another customer, or of all, are ended at once | an operator's token, and a subject: without one it is refused | `server/tests/serve/tokens.rs`: `an_operator_ends_all_sessions_of_a_subject_and_never_those_of_all` |
//! | questions about viewers are made up, or changed on their way, so that the operator's service takes them | signed (`--auth-request-secret`), with their time | `server/tests/serve/authorizations.rs`: `questions_are_signed_and_a_reload_reads_the_secret_again` |
//! | a title is sent over UDP to a victim's address | operators alone name addresses; to groups the datagrams stay in the local network unless they say otherwise | `server/tests/serve/admin.rs`: `the_api_is_the_operators_alone` |
//! | uploads that are too large, slow, cut off or no media | the free space of the disk, 16 KiB in 20 s, four at a time; nothing is left | `server/tests/serve/admin.rs`: `uploads_are_bounded_and_leave_nothing_behind` |
//! | the server is to download an address of its own network, a file, a redirect to one, or without an end | `--ingest-from` names what is allowed, and private networks only by host; the free space of the disk, 16 KiB in 20 s; FFmpeg opens no address | `server/src/address_prefix.rs`: `addresses_are_allowed_name_by_name`, `public_networks_are_those_of_the_internet`; `server/tests/serve/downloads.rs`: `each_download_is_ingested_or_refused_with_its_reason` |
//! | a list of the titles of a store with very many is asked for again and again | 10,000 titles in one list, and as many names that are searched; a name that is not there is compared with 2,000 | `server/src/library.rs`: `a_page_of_several_stores_has_each_title_once`; `store/tests/model.rs`: `the_pages_of_a_list_are_together_the_list`; `store/src/catalogue.rs`: `a_page_of_a_search_looks_at_a_bounded_number_of_names` |
//! | HTTP/1.0 asks for a connection that stays | the response ends it | `server/src/http/request.rs`: `a_connection_is_kept_by_http_1_1_alone` |
//! | RTSP: malformed and giant messages, other protocols | refused, and the connection is closed | `server/tests/serve/rtsp.rs`: `bytes_that_are_no_requests_end_their_connection_alone`, `each_bad_request_has_its_status_and_reserves_nothing` |
//! | RTSP: a message is sent slowly, one client opens many connections | 10 s; counted with those of HTTP | `server/tests/serve/rtsp.rs`: `a_message_that_comes_slowly_and_connections_over_the_limit_are_closed` |
//! | RTSP: a player reads nothing, or vanishes without TEARDOWN | 512 KiB wait for it; its session ends with the connection | `server/tests/serve/rtsp.rs`: `players_that_read_nothing_or_vanish_leave_nothing_behind` |
//! | RTSP: packets are asked for at another's address, or for nobody | they go to the peer of the connection; 60 s of silence end the session | `server/tests/serve/rtsp.rs`: `packets_over_udp_arrive_and_silence_ends_the_session` |
//! | RTSP: a tunnel with another's cookie, or with bytes that are not base 64 | its halves come from one address; both end | `server/tests/serve/rtsp.rs`: `requests_come_through_a_tunnel_of_the_same_player_only` |
//! | paths lead out of the server's | 404 | `server/tests/serve/hostile.rs`: `paths_with_tricks_are_not_found` |
//! | silent connections to an agent of the meter | 10 s for a handshake; the oldest of the largest crowd ends | `tenuto/tests/cli/fleet.rs`: `silent_connections_keep_no_controller_out` |
//! | a byte of a handshake from time to time | the limit is of the whole handshake | `meter/src/fleet/handshake.rs`: `a_byte_from_time_to_time_does_not_extend_a_handshake` |
//! | a silent port instead of an agent | 10 s for a handshake | `meter/src/fleet/handshake.rs`: `a_silent_peer_fails_the_handshake_and_not_what_follows_it` |
//! | the key of an encrypted title is asked for without a session, or looked for in views | 404; keys are in no status, metric or list | `tenuto/tests/playback/encrypted.rs`: `ffmpeg_and_shaka_play_encrypted_titles` |
//! | a file of titles' keys that others may read | refused | `tenuto/tests/playback/encrypted.rs`: `ffmpeg_and_shaka_play_encrypted_titles` |
//! | a token file that others may read | refused | `tenuto/tests/cli/fleet.rs`: `a_token_that_others_may_read_or_change_is_refused` |
//! | a page of another site, or a name that was made to lead to this machine, measures through the meter's console | its own page alone, on names of this machine | `meter/src/console/access.rs`: `pages_of_other_names_and_origins_start_nothing`; `tenuto/tests/cli/meter_console.rs`: `pages_of_other_names_and_origins_measure_nothing` |
//! | the meter's console is put on the network without thinking | refused without a token | `tenuto/tests/cli/meter_console.rs`: `a_console_for_others_needs_its_token` |
//! | the meter's console is to read, fill or remove what it may not | directories of `--allow` after links, and directories of reports | `meter/src/console/order.rs`: `orders_become_arguments_or_are_refused_with_what_to_do`; `meter/src/console/reports.rs`: `reports_are_directories_with_a_summary_and_nothing_else_is_read_or_removed` |
//! | names that are HTML in a report | text; the page's policy allows its own script alone | `meter/src/report/page.rs`: `the_data_of_a_plot_cannot_end_its_element_and_the_policy_names_the_only_script` |
//! | a media server sends a program of the client library garbage in RTP or in a transport stream | 32 MiB for an LDU, 8 streams, 1 KiB for a table; what makes no sense is left out | `tenuto-client/src/transport/tests.rs`: `random_bytes_do_no_harm`; `tenuto-client/src/rtsp/assembler.rs`: `payloads_of_random_bytes_do_no_harm` |
//! | a controller names files outside of an agent's | refused | `tenuto/tests/cli/fleet.rs`: `what_agents_do_not_do_is_refused` |
//! | ingest, rm, rename or serve is killed at any moment | all that was acknowledged is there, nothing else | `tenuto/tests/hostile/killed.rs`: `an_ingest_that_is_killed_at_any_moment_is_done_or_was_never_begun`, `commands_that_are_killed_are_done_or_were_never_begun`, `a_server_killed_while_it_plays_and_takes_in_leaves_a_store_as_it_was` |
//! | the power fails, writes are lost or torn | every acknowledged change is there | `store/tests/power_cut.rs`: `acknowledged_changes_survive_and_others_leave_no_trace`, `an_interrupted_format_can_be_repeated`, `a_power_cut_while_a_copy_gets_its_uuid_leaves_the_old_or_the_new_one`, `a_failed_write_stops_all_writing_and_loses_nothing` |
//! | media that refer to other files and addresses | the named file alone is opened, nothing is connected | `tenuto/tests/hostile/elsewhere.rs`: `media_that_refer_elsewhere_open_no_other_file_and_no_connection` |
//! | media of millions of tiny packets | memory by the index, not by the packet | `tenuto/tests/hostile/elsewhere.rs`: `a_million_packets_take_a_bounded_memory` |
//! | a file that keeps FFmpeg busy for ever | processor time by the size of the file | `store/src/ingest/process.rs`: `a_program_that_does_not_end_is_killed_by_its_processor_time` |
//! | a live input about which FFmpeg has no end of messages | 8 KiB of errors, 32 streams | `store/src/ingest/heard.rs`: `what_is_kept_is_bounded` |
//! | a live input that changes its form all the time | opened again at once only every 10 s | `store/src/series.rs`: `attempts_become_rarer_and_warnings_come_when_less_is_kept` |
//! | a live input of which single packets look like another form | not taken for one | `media/src/fragmented/form.rs`: `a_damaged_packet_is_no_other_form` |
//! | pictures that cannot be decoded, thumbnails of noise | the film without them, with the reason; 1,000 and 2 MiB | `store/tests/media.rs`: `a_title_without_thumbnails_says_why`, `a_store_that_the_thumbnails_fill_stays_unchanged` |
//! | corrupt media | refused or taken in and played, the store unchanged | `tenuto/tests/hostile/films.rs`: `corrupt_films_are_taken_in_and_play_or_are_refused_with_the_reason` |
//! | a transport stream is asked for at a constant rate of mostly null packets, for which no network is reserved | four times the lowest rate of the title | `server/tests/serve/transport.rs`: `a_file_at_a_constant_rate_is_refused_with_the_rates_that_there_are` |
//! | NAL units whose lengths are wrong, as a transport stream | packets of the announced length | `media/tests/it/transport.rs`: `any_stored_bytes_give_packets_of_the_announced_length` |
//! | titles with quotes, tags, escapes in playlists, headers, JSON | played under their names | `tenuto/tests/hostile/names.rs`: `titles_with_tricky_names_are_played_and_given_back_under_them` |
//! | names with control, bidirectional and zero-width characters | refused with the code point | `tenuto/tests/hostile/names.rs`: `names_that_cannot_be_are_refused_and_never_reach_the_terminal` |
//! | the catalogue is lost | rebuilt when allowed | `tenuto/tests/hostile/rotten.rs`: `a_lost_catalogue_is_shown_first_and_rebuilt_when_allowed` |
//! | bytes of a store are anything | named, never served as good | `tenuto/tests/hostile/rotten.rs`: `bytes_anywhere_may_be_anything`, `damaged_media_is_never_served_as_good_and_the_rest_is_served` |
//!
//! Crates with known weaknesses, and two versions of one crate, are refused by `deny.toml`; what a
//! server may do beside serving, by `packaging/tenuto.service`.

use crate::program::{Served, TestDir, program};
use crate::stage::{connect, eventually};
use rustix::net::{AddressFamily, SocketType};
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// A folder with `a.store`, which has the file title `words`.
fn with_words() -> TestDir {
    let dir = TestDir::with_store();
    dir.write("words.txt", "no film\n");
    dir.ok("ingest a.store words.txt --as file");
    dir
}

fn socket(dir: &TestDir) -> PathBuf {
    let entries = fs::read_dir(dir.path("tenuto")).expect("the directory of sockets");
    let mut paths = entries.map(|entry| entry.expect("an entry").path());
    paths.find(|path| path.extension().is_some_and(|end| end == "sock")).expect("a socket")
}

#[test]
fn a_copy_of_a_served_store_is_never_mistaken_for_it() {
    let dir = with_words();
    fs::copy(dir.path("a.store"), dir.path("b.store")).unwrap();
    let hint = "\nhint: run `tenuto relabel STORE --new-identity` on the copy\n";
    for end in ["--listen 127.0.0.1:0", "--check-config"] {
        let run = dir.run(&format!("serve a.store b.store {end}"));
        assert_eq!(run.code, Some(1), "{}", run.err);
        assert!(run.err.contains("b.store cannot be served: it has the identity of a.store"));
        assert!(run.err.ends_with(hint), "{}", run.err);
    }

    let server = dir.serve("");
    let asked = ["ls b.store", "rm b.store words", "ingest b.store words.txt --as file --title x"];
    for line in asked {
        dir.fails(line, 1, "a.store is served under this store's identity, and one is a copy");
        dir.fails(line, 1, hint);
    }
    let run = dir.run("serve b.store --listen 127.0.0.1:0");
    assert!(run.code == Some(1) && run.err.ends_with(hint), "{run:?}");
    assert!(run.err.contains("it has the identity of a.store, which is served"), "{}", run.err);
    assert_eq!(dir.ok("ls a.store"), "words\n", "the first server still answers");
    dir.fails("relabel a.store --new-identity", 1, "hint: stop the server");

    let given = dir.json("relabel b.store --new-identity");
    assert_eq!(given["before"], dir.json("info a.store")["uuid"]);
    assert_eq!(given["uuid"], dir.json("info b.store")["uuid"]);
    dir.ok("rm b.store words");
    assert_eq!((dir.ok("ls a.store").as_str(), dir.ok("ls b.store").as_str()), ("words\n", ""));
    assert_eq!(server.stop(), Some(0));
    for store in ["a.store", "b.store"] {
        assert_eq!(dir.json(&format!("check {store} --scrub"))["clean"], true, "{store}");
    }
}

/// Sends SIGTERM, and waits for the end of the server.
#[track_caller]
fn assert_stops(mut server: Served, context: &str) {
    let id = server.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let mut code = None;
    eventually(context, || {
        code = server.child.try_wait().unwrap();
        code.is_some()
    });
    assert_eq!(code.unwrap().code(), Some(0), "{context}");
}

#[test]
fn a_server_stops_whatever_became_of_its_control_socket() {
    let dir = TestDir::with_store();
    let server = dir.serve("");
    fs::remove_file(socket(&dir)).unwrap();
    assert_stops(server, "the socket is removed");

    let server = dir.serve("");
    fs::remove_dir_all(dir.path("tenuto")).unwrap();
    assert_stops(server, "the directory is removed");

    let server = dir.serve("");
    let path = socket(&dir);
    fs::remove_file(&path).unwrap();
    let other = UnixListener::bind(&path).unwrap();
    assert_stops(server, "the socket is replaced");
    assert!(UnixStream::connect(&path).is_ok(), "and the other one is left");
    drop(other);
}

#[test]
fn a_directory_of_sockets_that_others_may_write_is_refused() {
    let dir = TestDir::with_store();
    let directory = dir.path("tenuto");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, Permissions::from_mode(0o777)).unwrap();
    let hint = format!("\nhint: run `chmod 700 {}`\n", directory.display());
    for line in ["serve a.store --listen 127.0.0.1:0", "ls a.store"] {
        dir.fails(line, 1, "other users may write to ");
        dir.fails(line, 1, &hint);
    }
    fs::set_permissions(&directory, Permissions::from_mode(0o700)).unwrap();
    assert_eq!(dir.serve("").stop(), Some(0));
}

#[test]
fn the_control_socket_is_its_users_alone() {
    for umask in ["0", "277"] {
        let dir = TestDir::with_store();
        fs::create_dir(dir.path("tenuto")).unwrap();
        fs::set_permissions(dir.path("tenuto"), Permissions::from_mode(0o700)).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("umask {umask}; exec \"$@\""), "sh"]);
        let tenuto = program(&dir.path("."));
        shell.arg(tenuto.get_program()).current_dir(dir.path("."));
        shell.env("XDG_RUNTIME_DIR", dir.path("."));
        let server = dir.serve_by(shell, "");
        let mode = fs::metadata(socket(&dir)).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600, "umask {umask}");
        assert_eq!(dir.ok("ls a.store"), "");
        assert_eq!(server.stop(), Some(0));
    }
}

#[test]
fn another_user_gives_the_server_no_commands() {
    testkit::needs!(Root);
    let dir = with_words();
    let server = dir.serve("");
    let path = socket(&dir);
    // As if somebody had opened both by mistake.
    for (path, mode) in [(path.parent().unwrap(), 0o755), (&path, 0o666), (&dir.path("."), 0o755)] {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    // The identity of this thread alone.
    let stranger = std::thread::spawn(move || {
        let nobody = rustix::process::Uid::from_raw(65534);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let _ = stream.write_all(b"{\"rm\":{\"title\":\"words\"}}\n");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    });
    let answer = stranger.join().unwrap();
    assert!(answer.contains("only root and the server's user"), "{answer}");
    assert_eq!(dir.ok("ls a.store"), "words\n");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn ghosts_keep_their_own_client_out_and_no_other_viewer() {
    let dir = TestDir::with_store();
    dir.film("film.mkv");
    dir.ok("ingest a.store film.mkv");
    let server = dir.serve("--max-client-unplayed 2");
    let port = server.origin.rsplit(':').next().expect("a port").to_owned();
    let get = |from: [u8; 4], path: &str| -> String {
        // Each loopback address is a client of its own.
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&socket, &SocketAddr::from((from, 0))).unwrap();
        let to = SocketAddr::from(([127, 0, 0, 1], port.parse().unwrap()));
        rustix::net::connect(&socket, &to).unwrap();
        let mut stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    };
    let (attacker, viewer) = ([127, 0, 0, 66], [127, 0, 0, 7]);
    let master = "/t/film/master.m3u8";
    for _ in 0..2 {
        assert!(get(attacker, master).starts_with("HTTP/1.1 200 "));
    }
    for _ in 0..20 {
        let answer = get(attacker, master);
        assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
        assert!(answer.contains("127.0.0.66 has 2 sessions that it has not begun"), "{answer}");
    }
    assert!(get(viewer, master).starts_with("HTTP/1.1 200 "), "another client is let in");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn the_abandoned_sessions_of_others_keep_no_viewer_out() {
    let dir = TestDir::with_store();
    dir.film("film.mkv");
    dir.ok("ingest a.store film.mkv");
    let server = dir.serve("--throttle 40Mbps --memory 64MiB");
    let begin = || {
        let mut client = connect(&server);
        let master = client.get("/t/film/master.m3u8");
        if master.status == 200 {
            let token =
                master.text().split("?s=").nth(1).unwrap().split(['"', '\n']).next().unwrap();
            assert_eq!(client.get(&format!("/t/film/0.m3u8?s={token}")).status, 200);
        }
        master.status
    };
    eventually("abandoned sessions give way to abandoned sessions", || {
        begin();
        connect(&server).get("/status").json()["revoked"].as_u64().unwrap() > 0
    });
    eventually("and to a viewer", || begin() == 200);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn every_attack_of_the_list_has_its_test() {
    let text = include_str!("attacks.rs");
    let rows = text.lines().filter_map(|line| line.strip_prefix("//! | "));
    let mut found = 0;
    for row in rows.skip(1) {
        let tests = row.trim_end_matches(" |").rsplit(" | ").next().expect("three columns");
        let mut source = String::new();
        for word in tests.split('`').skip(1).step_by(2) {
            if word.ends_with(".rs") {
                let path = format!("{}/../{word}", env!("CARGO_MANIFEST_DIR"));
                source =
                    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
            } else {
                let test = format!("fn {word}()");
                assert!(source.contains(&test), "there is no {test}");
                let before = source.split(&test).next().expect("what is before it");
                assert!(before.trim_end().ends_with("#[test]"), "{word} is not a test");
                found += 1;
            }
        }
    }
    assert!(found >= 30, "{found} tests are named");
}
