//! The files of CC_WWW, by the path that asks for them.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

pub struct Site {
    www: PathBuf,
    /// Each file is read once and kept, as msquic reads it for as long as it is being sent.
    files: Mutex<HashMap<String, &'static [u8]>>,
}

impl Site {
    pub fn new(www: impl Into<PathBuf>) -> Self {
        Self { www: www.into(), files: Mutex::default() }
    }

    pub fn read(&self, path: &str) -> Option<&'static [u8]> {
        let name = path.strip_prefix('/')?;
        // A name and nothing else, so that no path leads out of the folder.
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) {
            return None;
        }
        let mut files = self.files.lock().ok()?;
        if let Some(body) = files.get(name) {
            return Some(body);
        }
        let body: &'static [u8] = fs::read(self.www.join(name)).ok()?.leak();
        files.insert(name.to_string(), body);
        Some(body)
    }
}
