//! The files of CC_WWW, by the path that asks for them.

use std::collections::HashMap;
use std::sync::Mutex;

/// Each file is read once and kept, as msquic reads it for as long as it is being sent.
#[derive(Default)]
pub struct Site(Mutex<HashMap<String, &'static [u8]>>);

impl Site {
    pub fn read(&self, path: &str) -> Option<&'static [u8]> {
        let mut files = self.0.lock().ok()?;
        if let Some(body) = files.get(path) {
            return Some(body);
        }
        let body: &'static [u8] = cc_adapter::file(path)?.leak();
        files.insert(path.to_string(), body);
        Some(body)
    }
}
