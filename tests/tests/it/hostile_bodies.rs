//! Bodies that are no JSON, JSON that readers disagree about, and JSON that is large in some direction.

use holdfast_tests::config::ACME;
use holdfast_tests::request_key;
use holdfast_wire::error::Code;

use crate::bodies::acme;
use crate::check::{ExpectedError, error};
use crate::hostile::{CANARY, Want, World};

/// Large enough for what is refused for other reasons than its size.
const BODY_BYTES: usize = 4 << 20;

fn world() -> World {
    World::new(|config| config.set("limits", "body_bytes", &BODY_BYTES.to_string()))
}

fn post(world: &World, request_key: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("{}Content-Length: {}\r\n\r\n", world.head(request_key), body.len());
    [head.as_bytes(), body].concat()
}

#[track_caller]
fn check(world: &mut World, name: &str, body: &[u8], expected: ExpectedError) {
    let key = request_key();
    let bytes = post(world, &key, body);
    let expected = expected.echo(&key).replayed(false);
    world.check(name, &key, &bytes, &Want::Row(Box::new(expected)));
}

/// A good body with one more member.
fn with(member: &str) -> String {
    acme(CANARY).replacen('{', &format!("{{{member},"), 1)
}

/// A good body whose text is spelled so.
fn saying(text: &[u8]) -> Vec<u8> {
    let body = format!("{{\"model\":\"{ACME}\",\"messages\":[{{\"role\":\"user\",\"content\":\"");
    [body.as_bytes(), text, b"\"}]}"].concat()
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_be_bytes).collect()
}

#[test]
fn what_is_no_json_is_not_read() {
    let mut world = world();
    let good = acme(CANARY);
    let twice = |name: &str| with(&format!("\"{name}\":\"{ACME}\""));
    let deep = |open: &str, n: usize| with(&format!("\"x\":{}", open.repeat(n)));
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("space", b" \r\n\t ".to_vec()),
        ("a NUL", b"\0".to_vec()),
        ("a form", format!("model={ACME}&messages={CANARY}").into()),
        ("XML", format!("<x>{CANARY}</x>").into()),
        ("another kind", format!("\"{CANARY}\"").into()),
        ("a list", format!("[{good}]").into()),
        ("a byte order mark", format!("\u{feff}{good}").into()),
        ("a NUL before", format!("\0{good}").into()),
        ("a NUL after", format!("{good}\0").into()),
        ("another after", format!("{good}{good}").into()),
        ("another line after", format!("{good}\n{good}\n").into()),
        ("garbage after", format!("{good} {CANARY}").into()),
        ("a comma too many", with("\"n\":1,").into()),
        ("a comma at the end", format!("{},}}", &good[..good.len() - 1]).into()),
        ("a comment", good.replacen('{', "{/* */", 1).into()),
        ("quotation marks that are none", good.replace('"', "'").into()),
        ("a name without", with("n:1").into()),
        ("no number", with("\"temperature\":NaN").into()),
        ("no end of numbers", with("\"temperature\":-Infinity").into()),
        ("a zero before", with("\"temperature\":01").into()),
        ("a plus before", with("\"temperature\":+1").into()),
        ("a point before", with("\"temperature\":.5").into()),
        ("a point after", with("\"temperature\":1.").into()),
        ("digits of another base", with("\"n\":0x1").into()),
        ("an unfinished power", with("\"temperature\":1e").into()),
        ("UTF-16", utf16(&good)),
        ("a byte that is no text", saying(b"\xff")),
        ("half a character", saying(b"\xe2\x82")),
        ("a character in too many bytes", saying(b"\xc0\xaf")),
        ("a surrogate as it is", saying(b"\xed\xa0\x80")),
        ("beyond all characters", saying(b"\xf4\x90\x80\x80")),
        ("a NUL in a text", saying(b"a\0b")),
        ("a line in a text", saying(b"a\nb")),
        ("a high surrogate", saying(b"\\ud83d")),
        ("a low surrogate", saying(b"\\ude00")),
        ("surrogates the wrong way", saying(b"\\ude00\\ud83d")),
        ("two high ones", saying(b"\\ud83d\\ud83d")),
        ("an escape that is none", saying(b"\\x41")),
        ("an escape cut short", saying(b"\\u12")),
        ("a backslash at the end", saying(b"\\")),
        ("a name twice", twice("model").into()),
        ("a name twice by escape", twice("\\u006dodel").into()),
        ("a name twice by all escapes", twice("\\u006D\\u006F\\u0064\\u0065\\u006C").into()),
        ("a name twice below", good.replacen("\"role\"", "\"role\":\"system\",\"role\"", 1).into()),
        ("a name twice in what is passed on", with("\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"a\":1,\"a\":2}}}]").into()),
        ("65 levels", format!("{{\"x\":{}{}}}", "[".repeat(64), "]".repeat(64)).into()),
        ("100,000 levels", deep("[", 100_000).into()),
        ("100,000 levels of objects", deep("{\"a\":", 100_000).into()),
        ("1,000,000 values", format!("{{\"x\":[{}0]}}", "0,".repeat(1_000_000)).into()),
        ("many small lists", format!("{{\"x\":[{}0]}}", "[[[]]],".repeat(100_000)).into()),
        ("a name of the canary's alone", format!("{{\"{CANARY}\"").into()),
    ];
    for (name, body) in cases {
        check(&mut world, name, &body, error(Code::InvalidJson));
    }
    world.check_unharmed();
}

#[test]
fn what_is_json_and_large_is_judged_by_what_it_says() {
    let mut world = world();
    let digits = "7".repeat(100_000);
    let members: String = (0..100_000).map(|at| format!("\"m{at:06}\":0,")).collect();
    let bias: String = (0..50_000).map(|at| format!("\"{at}\":0,")).collect();
    let pairs: String = (0..100_000).map(|at| format!("\"{at}\":\"\",")).collect();
    let invalid = |param| error(Code::InvalidValue).param(param);
    for (name, member, expected) in [
        ("a power of 400", "\"temperature\":1e400".to_owned(), invalid("temperature")),
        ("a power beyond all", format!("\"temperature\":1e{digits}"), invalid("temperature")),
        ("a power below all", format!("\"temperature\":1e-{digits}"), invalid("temperature")),
        ("100,000 digits", format!("\"seed\":{digits}"), invalid("seed")),
        ("100,000 digits behind", format!("\"top_p\":0.{digits}"), invalid("top_p")),
        ("2^63", "\"seed\":9223372036854775808".to_owned(), invalid("seed")),
        ("-2^63 - 1", "\"seed\":-9223372036854775809".to_owned(), invalid("seed")),
        ("2^53 + 1", "\"max_tokens\":9007199254740993".to_owned(), invalid("max_tokens")),
        ("-2^53 - 1", "\"max_tokens\":-9007199254740993".to_owned(), invalid("max_tokens")),
        ("2^64", "\"n\":18446744073709551616".to_owned(), invalid("n")),
        (
            "100,000 members",
            format!("{members}\"x\":0"),
            error(Code::UnknownParameter).param("m000000"),
        ),
        ("100,000 pairs", format!("\"metadata\":{{{pairs}\"x\":\"\"}}"), invalid("metadata")),
        (
            "a value of 1 MB",
            format!("\"user\":7,\"stop\":\"{}\"", "x".repeat(1 << 20)),
            invalid("user"),
        ),
        ("a bias too far", format!("\"logit_bias\":{{{bias}\"x\":101}}"), invalid("logit_bias.x")),
    ] {
        check(&mut world, name, with(&member).as_bytes(), expected);
    }
    let name = "x".repeat(1 << 20);
    let body = with(&format!("\"{name}\":1"));
    let param: &'static str = Box::leak(name[..64].to_owned().into_boxed_str());
    check(
        &mut world,
        "a name of 1 MB",
        body.as_bytes(),
        error(Code::UnknownParameter).param(param),
    );
    let odd = with("\"\\u0000\\u202e\\n\":1");
    check(
        &mut world,
        "a name that shows otherwise",
        odd.as_bytes(),
        error(Code::UnknownParameter).param("???"),
    );
    world.check_unharmed();
}

#[test]
fn what_is_only_unusual_is_served() {
    let mut world = world();
    let turns = format!("{{\"role\":\"user\",\"content\":\"{CANARY}\"}}");
    let turns = vec![turns.as_str(); 10_000].join(",");
    let parts = vec!["{\"type\":\"text\",\"text\":\"x\"}"; 10_000].join(",");
    for (name, body) in [
        ("10,000 messages", format!("{{\"model\":\"{ACME}\",\"messages\":[{turns}]}}").into_bytes()),
        ("10,000 parts", format!("{{\"model\":\"{ACME}\",\"messages\":[{{\"role\":\"user\",\"content\":[{parts}]}}]}}").into_bytes()),
        ("an escaped NUL", saying(b"a\\u0000b")),
        ("an emoji in two escapes", saying(b"\\uD83D\\ude00")),
        ("what is no character", saying("\u{ffff}\u{fdd0}".as_bytes())),
        ("a text that runs the other way", saying("\u{202e}abc".as_bytes())),
        ("the largest seed", with("\"seed\":9223372036854775807").into()),
        ("a seed beyond 2^53", with("\"seed\":-9007199254740993").into()),
        ("a whole number with a point", with("\"n\":1.0").into()),
        ("white space of 1 MB", format!("{}{}", " ".repeat(1 << 20), acme(CANARY)).into()),
        ("an empty text", saying(b"")),
        ("1 MB of text", saying("é".repeat(1 << 19).as_bytes())),
    ] {
        let key = request_key();
        let bytes = post(&world, &key, &body);
        world.check(name, &key, &bytes, &Want::Served);
    }
    world.check_unharmed();
}

#[test]
fn twenty_megabytes_are_refused_announced_or_not() {
    let mut world = world();
    let key = request_key();
    let body = format!("{{\"x\":\"{}\"}}", CANARY.repeat(20 << 20 >> 5));
    let want = Want::Row(Box::new(error(Code::RequestTooLarge).echo(&key)));
    world.check("announced", &key, &post(&world, &key, body.as_bytes()), &want);
    let chunks = body
        .as_bytes()
        .chunks(60_000)
        .map(|chunk| [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
    let head = format!("{}Transfer-Encoding: chunked\r\n\r\n", world.head(&key));
    let bytes = [head.into_bytes(), chunks.collect::<Vec<_>>().concat()].concat();
    world.check("unannounced", &key, &bytes, &want);
    world.check(
        "announced and not sent",
        &key,
        &post(&world, &key, body.as_bytes())[..2_000],
        &want,
    );
    let one_more = " ".repeat(BODY_BYTES + 1 - acme(CANARY).len()) + &acme(CANARY);
    world.check("one byte more", &key, &post(&world, &key, one_more.as_bytes()), &want);
    let exactly = &one_more.as_bytes()[1..];
    world.check("exactly", &key, &post(&world, &key, exactly), &Want::Served);
    world.check_unharmed();
}
