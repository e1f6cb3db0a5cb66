//! What callers did and saw, and what the upstream was sent, as lines of a file. Facts and moments only: nothing is
//! judged here, not even whether an answer is final.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use crate::chaos::heard::WholeAnswer;

/// Version of the format.
const FORMAT: u32 = 1;

/// The file of a history that is being written.
#[derive(Debug)]
pub(super) struct Recorder {
    begun: Instant,
    path: PathBuf,
    file: Mutex<BufWriter<File>>,
}

impl Recorder {
    /// Begins a file, and its folder if it is missing.
    pub(super) fn create(path: &Path, load: &str, seed: u64) -> Self {
        let folder = path.parent().expect("a file in a folder");
        std::fs::create_dir_all(folder).expect("a folder");
        let file = Mutex::new(BufWriter::new(File::create(path).expect("a file")));
        let recorder = Self { begun: Instant::now(), path: path.to_owned(), file };
        recorder.write(&json!({"type": "history", "format": FORMAT, "load": load, "seed": seed}));
        recorder
    }

    /// Microseconds since the recorder began.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_micros()).expect("less than an age")
    }

    /// Adds a record.
    pub(super) fn write(&self, record: &Value) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(file, "{record}").expect("room for a history");
    }

    /// Brings all records to the file, and gives its place.
    pub(super) fn finish(&self) -> PathBuf {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.flush().expect("room for a history");
        self.path.clone()
    }
}

/// Digest of bytes, short enough to be read by people.
pub(super) fn digest(bytes: impl AsRef<[u8]>) -> String {
    blake3::hash(bytes.as_ref()).to_hex().as_str()[..24].to_owned()
}

/// An answer as a record has it.
pub(super) fn answer(whole: &WholeAnswer) -> Value {
    let gist = &whole.gist;
    let is_completion = whole.status == 200;
    let (operation, charge) = if is_completion {
        (&gist["id"], &gist["usage"]["customer_charge_micros"])
    } else {
        (&gist["operation_id"], &gist["charged_micros"])
    };
    let operation = operation.as_str().map(|id| id.replace("chatcmpl_", "").replace('-', ""));
    json!({
        "status": whole.status,
        "code": gist["code"],
        "bytes": whole.body.as_ref().map(digest),
        "content": digest(gist.to_string()),
        "operation": operation,
        "charge_micros": charge,
    })
}
