//! What `check-config` says of wrong files, word for word: `mistakes/NN-name.toml` and beside it what is
//! printed. With `HOLDFAST_REWRITE_MISTAKES` set, what is printed is written instead: read it as an
//! operator would before it is kept.

use std::fs;
use std::path::{Path, PathBuf};

use holdfast_tests::{Config, Ran, Reply, Site, Upstream};
use serde_json::Value;

/// What no output may show.
const SECRETS: [&str; 4] = ["in-the-environment", "brief", "hunter2", "sk with"];

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mistakes");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().unwrap() == "toml").collect();
    files.sort();
    files
}

fn site() -> Site {
    Site::configured(&Config::simulated())
        .with_env("HOLDFAST_SECRET", "a-server-secret-in-the-environment")
        .with_env("HOLDFAST_ADMIN_TOKEN", "an-admin-token-in-the-environment")
        .with_env("SHORT", "brief")
}

#[test]
fn every_wrong_file_is_explained() {
    let site = site();
    let rewrites = std::env::var_os("HOLDFAST_REWRITE_MISTAKES").is_some();
    let files = files();
    assert!(files.len() >= 25, "{files:?}");
    let mut others = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        site.write("holdfast.toml", &text);
        let Ran { code, stdout, stderr } = site.cli(&["check-config"]);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{file:?} {stderr}");
        assert!(SECRETS.iter().all(|secret| !stderr.contains(secret)), "{file:?} {stderr}");
        check_lines(&text, &stderr);
        let expected = file.with_extension("txt");
        if rewrites {
            fs::write(&expected, &stderr).unwrap();
        } else if fs::read_to_string(&expected).unwrap_or_default() != stderr {
            others.push(format!("{}\n{stderr}", file.display()));
        }
    }
    assert!(others.is_empty(), "not as it is written down:\n{}", others.join("\n"));
}

/// Every line names a line of the file, and they come in its order.
#[track_caller]
fn check_lines(text: &str, told: &str) {
    let number = |line: &str| {
        let rest = line.strip_prefix("holdfast.toml:").unwrap_or_else(|| panic!("{told}"));
        rest.split_once(": ").unwrap().0.parse::<usize>().unwrap()
    };
    let numbers: Vec<_> = told.lines().skip(1).map(number).collect();
    assert!(!numbers.is_empty() && numbers.is_sorted(), "{told}");
    assert!(numbers.iter().all(|number| (1..=text.lines().count().max(1)).contains(number)));
    let noun = if numbers.len() == 1 { "mistake" } else { "mistakes" };
    let head = format!("error: {} {noun} in the configuration", numbers.len());
    assert_eq!(told.lines().next(), Some(head.as_str()));
}

#[test]
fn a_probe_asks_each_provider_for_its_models_and_calls_each_route_once() {
    let upstream = Upstream::start(Reply::saying("ok"));
    let absent = format!("http://{}/v1", Upstream::absent());
    let config = Config::upstream(&upstream)
        .set("providers.sim", "kind", "\"simulated\"")
        .set("providers.open", "kind", "\"openai\"")
        .set("providers.open", "base_url", &format!("\"{}\"", upstream.base_url()));
    let site = Site::configured(&config);
    let probed = |code: i32| {
        let ran = site.cli(&["check-config", "--probe", "--json"]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        serde_json::from_str::<Value>(&ran.stdout).unwrap()
    };
    let answer = |view: &Value, provider: &str| {
        let probes = view["probes"].as_array().unwrap().clone();
        let probe = probes.iter().find(|probe| probe["provider"] == provider).unwrap().clone();
        (probe["ok"].as_bool().unwrap(), probe["answer"].as_str().unwrap().to_owned())
    };
    let view = probed(0);
    assert_eq!(answer(&view, "acme"), (true, "reached, and it takes the api_key".to_owned()));
    assert_eq!(answer(&view, "open"), (true, "reached, without an api_key".to_owned()));
    assert!(answer(&view, "sim").0);
    let arrived = upstream.arrived();
    let [asked @ .., called] = arrived.as_slice() else { panic!("{arrived:?}") };
    for arrived in asked {
        assert!(arrived.head.starts_with("GET /v1/models HTTP/1.1\r\n"), "{arrived:?}");
        assert_eq!(arrived.body, "");
    }
    assert_eq!(asked.len(), 2);
    assert!(called.head.starts_with("POST /v1/chat/completions "), "{called:?}");
    assert_eq!(called.json()["max_completion_tokens"], 16);
    let routes = view["routes"].as_array().unwrap();
    assert_eq!(routes.len(), 1);
    assert_eq!(routes[0]["model"], "acme/large-1");
    assert_eq!((&routes[0]["ok"], &routes[0]["answer"]), (&true.into(), &"answers".into()));

    for (status, told, of_route) in [
        (401, "refuses the api_key (401)", "not_run_account"),
        (404, "lists no models (404)", "not_run_account"),
        (302, "points elsewhere (302)", "unknown_status"),
        (503, "does not work now (503)", "unknown_status"),
    ] {
        upstream.otherwise(Reply::Send(status, String::new()));
        let view = probed(1);
        let (ok, answer) = answer(&view, "acme");
        assert!(!ok && answer.contains(told), "{answer}");
        assert_eq!(view["ok"], false);
        let route = &view["routes"][0];
        assert_eq!((&route["ok"], &route["class"]), (&false.into(), &of_route.into()));
    }
    upstream.otherwise(Reply::Send(200, String::new()));
    site.configure(&config.set("providers.acme", "base_url", &format!("\"{absent}\"")));
    let (ok, answer) = answer(&probed(1), "acme");
    assert!(!ok && answer.starts_with("not reached: ") && answer.contains("refused"), "{answer}");
    let said = site.cli(&["check-config", "--probe"]);
    assert!(said.stdout.contains("not reached"), "{said:?}");
    assert!(said.stdout.contains("acme/large-1 by acme/"), "{said:?}");
    assert!(site.cli(&["check-config"]).code == Some(0), "nobody is asked without the option");
}
