//! The rows that commands which measure a target have in common, written once.

/// The rows of a command that measures a target: those of its own, then where it measures and what
/// it leaves. `$name`: as it is typed; `$with`: what else it needs.
macro_rules! on_a_target {
    ($name:literal, $with:literal, [$($row:expr),* $(,)?]) => {
        &[
            $($row,)*
            Row::option("target", Value::Text, "What is measured: a directory, a file, a bucket, a server")
                .long(
                    "In a directory, or at s3://BUCKET/PREFIX, files are made, filled, used and gone \
                     afterwards. A file or a block device is only read, unless --destructive names \
                     it. http(s)://... is a title (HLS, DASH or MP4), or a server with all its titles, \
                     which `meter run` and `meter capacity` play as viewers would. sim:MODEL is a simulated disk, in \
                     virtual time; null: is nothing at all, by the clock on the wall: what is late \
                     there is the meter or this machine.",
                )
                .example(concat!("meter ", $name, $with, " --target sim:hdd-20tb"))
                .bad(concat!("meter ", $name, " --target"), "--target needs a value"),
            Row::option("size", Value::Size, "Of the files that are made in a directory, together")
                .default("4GiB")
                .long("Larger than the caches on the way, or they are what is measured.")
                .example(concat!("meter ", $name, $with, " --target /mnt/films --size 64GiB"))
                .bad(
                    concat!("meter ", $name, " --size all"),
                    "--size: 'all' is not a size such as 64KiB, 40GiB or 2TB",
                ),
            Row::option("fill-level", Value::Count(1, 99), "Fill the file system to so many percent first")
                .long(
                    "The space is reserved and given back afterwards; nothing is written to it, so \
                     that a disk that allocates by itself does not notice.",
                )
                .example(concat!("meter ", $name, $with, " --target /mnt/films --fill-level 90"))
                .bad(
                    concat!("meter ", $name, " --fill-level full"),
                    "--fill-level: 'full' is not a whole number from 1 to 99",
                ),
            Row::switch("buffered", "Through the page cache")
                .long("As programs usually read; what was read lately comes from memory.")
                .example(concat!("meter ", $name, $with, " --target /mnt/films --buffered"))
                .bad(concat!("meter ", $name, " --buffered=yes"), "--buffered takes no value"),
            Row::switch("drop-caches", "Empty the page cache of the files before each run")
                .long(
                    "With --buffered, and where a file system cannot do without the page cache: \
                     what is read then comes from the storage.",
                )
                .example(concat!("meter ", $name, $with, " --target /mnt/films --buffered --drop-caches"))
                .bad(concat!("meter ", $name, " --drop-caches=yes"), "--drop-caches takes no value"),
            Row::option("endpoint", Value::Text, "Where buckets are: http[s]://HOST[:PORT]")
                .long(
                    "Instead of AWS_ENDPOINT_URL. The keys are AWS_ACCESS_KEY_ID and \
                     AWS_SECRET_ACCESS_KEY, in the environment.",
                )
                .example(concat!("meter ", $name, $with, " --target s3://films --endpoint http://127.0.0.1:9000"))
                .bad(concat!("meter ", $name, " --endpoint"), "--endpoint needs a value"),
            Row::option("region", Value::Text, "Of the bucket")
                .long("Instead of AWS_REGION. Without either us-east-1.")
                .example(concat!("meter ", $name, $with, " --target s3://films --region eu-central-1"))
                .bad(concat!("meter ", $name, " --region"), "--region needs a value"),
            ca_file(
                concat!("meter ", $name, $with, " --target https://films.example --ca-file ca.pem"),
                concat!("meter ", $name, " --ca-file"),
            ),
            insecure(
                concat!("meter ", $name, $with, " --target https://10.0.0.5 --insecure"),
                concat!("meter ", $name, " --insecure=yes"),
            ),
            cert_file(
                concat!(
                    "meter ",
                    $name,
                    $with,
                    " --target https://films.example --cert-file me.pem --key-file me.key"
                ),
                concat!("meter ", $name, " --cert-file"),
            ),
            key_file(
                concat!(
                    "meter ",
                    $name,
                    $with,
                    " --target https://films.example --cert-file me.pem --key-file me.key"
                ),
                concat!("meter ", $name, " --key-file"),
            ),
            Row::option("destructive", Value::Text, "Write over this file or device; as --target has it")
                .long("What is in it is lost. Without it nothing is written but files made for the run.")
                .example(concat!("meter ", $name, $with, " --target /dev/sdx --destructive /dev/sdx"))
                .bad(concat!("meter ", $name, " --destructive"), "--destructive needs a value"),
            Row::option("metrics", Value::Address, "Serve counts of the run here while it is on: ADDR:PORT")
                .long(
                    "OpenMetrics text at http://ADDR:PORT/metrics, each explained in \
                     docs/reference/metrics.md. Port 0 is any that is free; which one is said on \
                     stderr.",
                )
                .example(concat!("meter ", $name, $with, " --target /mnt/films --metrics 127.0.0.1:9101"))
                .bad(
                    concat!("meter ", $name, " --metrics here"),
                    "--metrics: 'here' is not an address such as 127.0.0.1:8080 or [::]:8080",
                ),
            Row::option("out", Value::Path, "A new directory for the report and all figures")
                .long("docs/guide/measure-storage.md says what is in it.")
                .example(concat!("meter ", $name, $with, " --target /mnt/films --out monday"))
                .bad(concat!("meter ", $name, " --out"), "--out needs a value"),
            json(
                concat!("meter ", $name, $with, " --target /mnt/films --json"),
                concat!("meter ", $name, " --json=x"),
            ),
        ]
    };
}

/// The row of a profile. `$named`: one that fits.
macro_rules! profile {
    ($name:literal, $named:literal) => {
        Row::option("profile", Value::Text, "What is asked for: a profile's name, or a TOML file")
            .long("`tenuto meter profiles` lists those that come along.")
            .example(concat!("meter ", $name, " --profile ", $named, " --target /mnt/films"))
            .bad(concat!("meter ", $name, " --profile"), "--profile needs a value")
    };
}

/// The row of a threshold. `$with`: what else the command needs.
macro_rules! threshold {
    ($name:literal, $with:literal) => {
        Row::option("threshold", Value::Rate, "Tell at once when the mean rate falls below this")
            .long("Of all together (or with --each of any), in the mean of --window; and when it has come back.")
            .example(concat!("meter ", $name, $with, " --target /mnt/films --threshold 40Mbps"))
            .bad(
                concat!("meter ", $name, " --threshold 40MB"),
                "--threshold: '40MB' is not a bit rate such as 800kbps, 8.5Mbps or 10Gbps",
            )
    };
}

/// The row of a threshold that holds for each. `$of`: whom.
macro_rules! each {
    ($name:literal, $with:literal, $of:literal) => {
        Row::switch("each", concat!("Hold --threshold against ", $of, " by itself"))
            .long("Rather than all together, of whom one may starve unseen.")
            .example(concat!(
                "meter ",
                $name,
                $with,
                " --target /mnt/films --threshold 9Mbps --each"
            ))
            .bad(concat!("meter ", $name, " --each=yes"), "--each takes no value")
    };
}

/// The row of its window. `$without`: what it is where it is not given.
macro_rules! window {
    ($name:literal, $with:literal, $without:literal) => {
        Row::option("window", Value::Time, "What --threshold takes the mean of")
            .long($without)
            .example(concat!(
                "meter ",
                $name,
                $with,
                " --target /mnt/films --threshold 9Mbps --window 2s"
            ))
            .bad(
                concat!("meter ", $name, " --window 2"),
                "--window: '2' is not a time such as 500ms, 2s or 1h",
            )
    };
}

pub(super) use {each, on_a_target, profile, threshold, window};
