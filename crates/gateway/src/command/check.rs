//! `holdfast check-config`

use serde::Serialize;

use crate::config::{BadConfig, Config};
use crate::failure::{Failure, Status};
use crate::output::Output;

#[derive(Debug, Serialize)]
struct CheckView {
    ok: bool,
    file: Option<String>,
    providers: usize,
    models: usize,
    mistakes: Vec<String>,
}

pub(super) fn run(output: Output, config: Result<Config, BadConfig>) -> Result<(), Failure> {
    let config = match (config, output) {
        (Ok(config), _) => config,
        (Err(BadConfig::Mistakes(mistakes)), Output::Json) => {
            let mistakes = mistakes.iter().map(ToString::to_string).collect();
            let view = CheckView { ok: false, file: None, providers: 0, models: 0, mistakes };
            output.object(&view, &[])?;
            return Err(Failure::Told(Status::Usage));
        }
        (Err(error), _) => return Err(error.into()),
    };
    let file = config.file.map(|file| file.display().to_string());
    let (providers, models) = (config.providers.len(), config.models.len());
    let fields = [
        ("configuration", file.clone().unwrap_or_else(|| "the embedded default".to_owned())),
        ("providers", providers.to_string()),
        ("models", models.to_string()),
        ("mistakes", "none".to_owned()),
    ];
    let view = CheckView { ok: true, file, providers, models, mistakes: Vec::new() };
    output.object(&view, &fields)
}
