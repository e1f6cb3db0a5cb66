//! Diagrams of the documentation: `docs/diagrams/render.py` renders each SVG from its text source, with Python
//! alone, so that a diagram is reviewed line by line. An SVG is never edited by hand.

use std::process::Command;

use anyhow::Result;

use crate::{
    shell::{self, print_line},
    workspace::Workspace,
};

const SCRIPT: &str = "docs/diagrams/render.py";

/// Writes every diagram; true if all could be rendered.
pub(crate) fn run(workspace: &Workspace) -> Result<bool> {
    let rendered = shell::capture(&mut render(workspace))?;
    if !rendered.status.success() {
        print_line(&rendered.stderr)?;
        return Ok(false);
    }
    print_line("docs/diagrams is written")?;
    Ok(true)
}

fn render(workspace: &Workspace) -> Command {
    let mut python = Command::new("python3");
    python.arg(workspace.root.join(SCRIPT));
    python
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_diagram_is_rendered_from_its_source() {
        let workspace = Workspace::load().unwrap();
        let checked = shell::capture(render(&workspace).arg("--check")).unwrap();
        assert!(checked.status.success(), "{}", checked.stderr);
    }
}
