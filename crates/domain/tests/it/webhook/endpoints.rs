//! URLs: what is taken, what is refused and with which words, and what the operator's list changes.

use holdfast_domain::admin::webhook::{BadEndpoint, BadOrigin, Endpoint, Host, Origin, Scheme};
use proptest::prelude::proptest;

fn origin(text: &str) -> Origin {
    Origin::try_from(text).unwrap()
}

#[track_caller]
fn check_refused(url: &str, expected: BadEndpoint) {
    assert_eq!(Endpoint::parse(url, &[]), Err(expected), "{url}");
}

#[test]
fn parts_of_a_url_are_what_is_connected_to_and_asked_for() {
    for (url, authority, target) in [
        ("https://hooks.example.com", "hooks.example.com", "/"),
        ("HTTPS://Hooks.Example.COM:443/In", "hooks.example.com", "/In"),
        ("https://hooks.example.com?a=b", "hooks.example.com", "/?a=b"),
        ("https://a_b.example/x%2Fy/../z;p=1?q=@:/", "a_b.example", "/x%2Fy/../z;p=1?q=@:/"),
        ("https://xn--bcher-kva.example//x", "xn--bcher-kva.example", "//x"),
        ("https://9.9.9.9/x", "9.9.9.9", "/x"),
        ("https://[2606:4700::1111]/x", "[2606:4700::1111]", "/x"),
    ] {
        let endpoint = Endpoint::parse(url, &[]).unwrap();
        assert_eq!(endpoint.origin().authority(), authority, "{url}");
        assert_eq!(endpoint.target(), target, "{url}");
        assert_eq!((endpoint.origin().scheme, endpoint.origin().port), (Scheme::Https, 443));
    }
}

#[test]
fn urls_are_refused_for_what_is_wrong_with_them() {
    check_refused("http://hooks.example.com/", BadEndpoint::Scheme);
    check_refused("http://hooks.example.com:443/", BadEndpoint::Scheme);
    check_refused("https://hooks.example.com:8443/", BadEndpoint::Port);
    check_refused("https://hooks.example.com/#top", BadEndpoint::Fragment);
    check_refused("https://hooks.example.com#", BadEndpoint::Fragment);
    for target in
        ["/a b", "/a\\b", "/ü", "/%", "/%2", "/%zz", "/a\r\nx: y", "/{a}", "/\"", "/<", "/|"]
    {
        check_refused(&format!("https://hooks.example.com{target}"), BadEndpoint::Character);
    }
    let long = format!("https://hooks.example.com/{}", "a".repeat(Endpoint::LEN_MAX));
    check_refused(&long[..=Endpoint::LEN_MAX], BadEndpoint::TooLong);
    assert!(Endpoint::parse(&long[..Endpoint::LEN_MAX], &[]).is_ok());
}

#[test]
fn urls_without_an_origin_are_refused() {
    let check = |url: &str, expected| check_refused(url, BadEndpoint::Origin(expected));
    for url in ["", "hooks.example.com", "https:/hooks.example.com", "//hooks.example.com/"] {
        check(url, BadOrigin::Malformed);
    }
    for port in ["", "0", "65536", "+443", "44a", " 443", "-1"] {
        check(&format!("https://hooks.example.com:{port}/"), BadOrigin::Malformed);
    }
    for url in ["ftp://hooks.example.com/", "file:///etc/passwd", " https://hooks.example.com/"] {
        check(url, BadOrigin::Scheme);
    }
    for user in ["user@", "user:password@", "@", "hooks.example.com\\@"] {
        check(&format!("https://{user}hooks.example.com/"), BadOrigin::UserInfo);
    }
}

#[test]
fn hosts_have_one_reading() {
    let label = "a".repeat(63);
    let long = [label.as_str(); 4].join(".");
    for host in [
        "",
        ".",
        "hooks.example.com.",
        "hooks..example",
        "-hooks.example",
        "hooks-.example",
        "hooks example",
        "hooks\\example",
        "hooks%2eexample",
        "bücher.example",
        "2130706433",
        "127.1",
        "0177.0.0.1",
        "0x7f000001",
        "0x7f.0.0.1",
        "127.0.0.0x1",
        "256.1.1.1",
        "1.2.3.4.5",
        "[::1",
        "[::1%25eth0]",
        "[127.0.0.1]",
        "[]",
        &format!("{label}a.example"),
        &long,
    ] {
        check_refused(&format!("https://{host}/"), BadEndpoint::Origin(BadOrigin::Host));
    }
    assert_eq!(origin("https://LOCALHOST").host, Host::Name("localhost".into()));
    assert!(Endpoint::parse(&format!("https://{}/", &long[..253]), &[]).is_ok());
}

#[test]
fn addresses_that_are_written_out_must_be_global() {
    for host in ["127.0.0.1", "169.254.169.254", "[::1]", "[::ffff:10.0.0.1]", "[64:ff9b::a00:1]"] {
        check_refused(&format!("https://{host}/"), BadEndpoint::Address);
    }
}

#[test]
fn listed_origins_are_judged_neither_by_scheme_nor_port_nor_address() {
    let allow = ["http://[::1]:9000", "https://hooks.internal"].map(origin);
    let read = |url| Endpoint::parse(url, &allow);
    let local = read("http://[::1]:9000/in").unwrap();
    assert!(local.permits("127.0.0.1".parse().unwrap()));
    assert!(read("https://hooks.internal/in").unwrap().permits("10.0.0.1".parse().unwrap()));
    // Another port, scheme or host is another origin, and the rest of a URL is judged all the same.
    assert_eq!(read("http://[::1]:9001/in"), Err(BadEndpoint::Scheme));
    assert_eq!(read("https://[::1]:9000/in"), Err(BadEndpoint::Port));
    assert_eq!(read("http://hooks.internal/in"), Err(BadEndpoint::Scheme));
    assert_eq!(read("http://[::1]:9000/in#x"), Err(BadEndpoint::Fragment));
    let user = Err(BadEndpoint::Origin(BadOrigin::UserInfo));
    assert_eq!(read("http://user@[::1]:9000/in"), user);
    let other = read("https://hooks.example.com/").unwrap();
    assert!(!other.permits("10.0.0.1".parse().unwrap()));
    assert!(other.permits("9.9.9.9".parse().unwrap()));
}

#[test]
fn an_origin_ends_after_its_port() {
    let read = |text| Origin::try_from(text);
    assert_eq!(read("http://localhost:80/"), read("http://localhost"));
    for text in
        ["http://localhost/x", "http://localhost?", "http://localhost#x", "http://localhost//"]
    {
        assert_eq!(read(text), Err(BadOrigin::Rest), "{text}");
    }
    for text in ["https://hooks.test", "http://hooks.test:8080", "http://[::1]:9000"] {
        assert_eq!(read(text).unwrap().to_string(), text);
    }
}

#[test]
fn an_endpoint_prints_no_path() {
    let endpoint = Endpoint::parse("https://hooks.example.com/T0/secret?token=x", &[]).unwrap();
    assert_eq!(format!("{endpoint:?}"), "Endpoint(https://hooks.example.com/…)");
}

proptest! {
    /// Nothing else is said to a server than what stands in the URL, and no line can be broken.
    #[test]
    fn what_is_taken_stands_in_the_url(url in "https://[ -~\n]{0,24}") {
        if let Ok(endpoint) = Endpoint::parse(&url, &[]) {
            let origin = endpoint.origin().to_string();
            assert!(url.to_ascii_lowercase().starts_with(&origin), "{url:?} is {origin}");
            assert!(endpoint.target().bytes().all(|byte| byte.is_ascii_graphic()), "{url:?}");
        }
    }
}
