//! A file of requests and replies, so that prompts and checks can be measured on true replies again.
//!
//! Each line is a [`RecordedCall`] as JSON. The requests hold the text of logs; secrets are masked in them as in any
//! request, and in the replies as well. Nothing is recorded unless `model.record` names a file.

use std::{io, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{ModelRequest, Stage};
use crate::{privacy::PrivacyRules, store::fs::private_append};

/// A request and its reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedCall {
    /// The purpose.
    pub stage: Stage,
    /// The period; of several weeks the newest.
    pub period: String,
    /// The instructions; empty where only the reply matters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub system: String,
    /// The texts of the turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
    /// The text of the reply.
    pub reply: String,
}

/// A file to which calls are appended.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Where it is.
    pub path: PathBuf,
}

impl Recording {
    /// Appends a call.
    ///
    /// # Errors
    ///
    /// Returns why the file could not be written.
    pub(crate) fn append(&self, request: &ModelRequest, reply: &str) -> io::Result<()> {
        let rules = PrivacyRules::default();
        let masked = |text: &str| rules.mask_secrets(text).into_owned();
        let call = RecordedCall {
            stage: request.stage,
            period: request.period.clone(),
            system: request.system.clone(),
            messages: request.messages.iter().map(|it| masked(&it.text)).collect(),
            reply: masked(reply),
        };
        private_append::append_line(&self.path, &serde_json::to_string(&call)?)
    }
}
