//! Addresses within the console: a path, and a query whose values are escaped.

use holdfast_domain::admin::ResourceId;
use uuid::Uuid;

/// A path with these parameters; those without a value are left out.
pub(crate) fn with_query(path: &str, params: &[(&str, Option<&str>)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in params {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            query.append_pair(name, value);
        }
    }
    let query = query.finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// The address, if it leads to a page of the console.
pub(crate) fn within(address: &str) -> Option<&str> {
    let is_path = address.starts_with('/') && !address.starts_with("//");
    // Browsers take a backslash for a slash, and leave line ends out.
    let is_plain = address.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    Some(address).filter(|_address| is_path && is_plain)
}

/// The address without a parameter of its query.
pub(crate) fn without(address: &str, name: &str) -> String {
    let Some((path, query)) = address.split_once('?') else { return address.to_owned() };
    let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
    let kept = pairs.iter().filter(|(other, _value)| other != name);
    let kept: Vec<_> = kept.map(|(other, value)| (other.as_ref(), Some(value.as_ref()))).collect();
    with_query(path, &kept)
}

/// Address of the page of a resource, if it has one.
pub(crate) fn of_thing(thing: ResourceId) -> Option<String> {
    let (folder, id) = match thing {
        ResourceId::Wallet(id) => ("wallets", id.to_bytes()),
        ResourceId::ApiKey(id) => ("keys", id.to_bytes()),
        ResourceId::Posting(id) => ("postings", id.to_bytes()),
        ResourceId::Operation(id) => ("operations", id.to_bytes()),
        ResourceId::Person(id) => ("people", id.to_bytes()),
        ResourceId::AdminKey(id) => ("admin-keys", id.to_bytes()),
        ResourceId::Webhook(id) => ("webhooks", id.to_bytes()),
        ResourceId::Job(id) => ("jobs", id.to_bytes()),
        ResourceId::Unknown => return None,
    };
    Some(format!("/{folder}/{}", Uuid::from_bytes(id)))
}

/// Noun of a resource's kind, as it begins a sentence.
pub(crate) const fn noun(thing: ResourceId) -> &'static str {
    match thing {
        ResourceId::Wallet(_) => "Wallet",
        ResourceId::ApiKey(_) => "API key",
        ResourceId::Posting(_) => "Payment",
        ResourceId::Operation(_) => "Request",
        ResourceId::Person(_) => "Person",
        ResourceId::AdminKey(_) => "Admin key",
        ResourceId::Webhook(_) => "Webhook",
        ResourceId::Job(_) => "Ledger check",
        ResourceId::Unknown => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_of_the_console_is_within_it() {
        for within_it in ["/", "/wallets?after=7", "/people/new?key=1"] {
            assert_eq!(within(within_it), Some(within_it));
        }
        for elsewhere in
            ["", "//evil.example", "/\\evil.example", "https://evil.example", "x", "/\n/x", "/ x"]
        {
            assert_eq!(within(elsewhere), None, "{elsewhere:?}");
        }
    }

    #[test]
    fn a_parameter_goes_whatever_stands_around_it_and_however_it_is_written() {
        for (address, expected) in [
            ("/x?key=1&review=a%3D2", "/x?key=1"),
            ("/x?%72eview=a&key=1&review=b", "/x?key=1"),
            ("/x?review=a", "/x"),
            ("/x", "/x"),
        ] {
            assert_eq!(without(address, "review"), expected);
        }
    }

    #[test]
    fn a_query_is_escaped_and_has_no_empty_values() {
        let address = with_query("/x", &[("a", Some("1&2")), ("b", None), ("c", Some(""))]);
        assert_eq!(address, "/x?a=1%262");
        assert_eq!(with_query("/x", &[]), "/x");
    }
}
