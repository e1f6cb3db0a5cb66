//! Parts of the URL of a server's database, and the URLs of its single hosts, which the driver reads. It decodes no
//! part: the driver does that.

use super::super::BadDatabaseUrl;

/// Parameters after `?`; the driver would skip others in silence, or almost.
const PARAMETERS: [&str; 8] = [
    "host",
    "port",
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "application_name",
    "target_session_attrs",
];
/// Parameters that are not the driver's: they are of all hosts, or say what is so in any case.
const OWN: [&str; 3] = ["host", "port", "target_session_attrs"];
/// Values of `target_session_attrs` for a primary, which every connection requires.
const PRIMARY: [&str; 2] = ["primary", "read-write"];
/// Most hosts of one URL: while none of them is a primary, each is tried every second.
const HOSTS_MAX: usize = 8;
/// Host in the URL of a server whose host is a parameter, which the driver prefers.
const PLACEHOLDER: &str = "localhost";

/// Parameters of a URL, as they are written there.
pub(super) struct Parameters<'u>(Vec<(&'u str, &'u str)>);

impl<'u> Parameters<'u> {
    pub(super) fn read(text: &'u str) -> Result<Self, BadDatabaseUrl> {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pairs: Vec<_> = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).collect();
        let parameters = Self(pairs);
        let is_known = |(name, _): &(&str, &str)| PARAMETERS.contains(name);
        let wanted = parameters.get("target_session_attrs");
        if !parameters.0.iter().all(is_known)
            || wanted.is_some_and(|wanted| !PRIMARY.contains(&wanted))
        {
            return Err(BadDatabaseUrl::Parameter);
        }
        Ok(parameters)
    }

    /// The last one of that name, as for the driver.
    pub(super) fn get(&self, name: &str) -> Option<&'u str> {
        self.0.iter().rfind(|(own, _)| *own == name).map(|(_, value)| *value)
    }

    /// Those of every host.
    fn shared(&self) -> String {
        let shared = self.0.iter().filter(|(name, _)| !OWN.contains(name));
        shared.map(|(name, value)| format!("{name}={value}&")).collect()
    }
}

/// Parts before `?`.
pub(super) struct Address<'u> {
    scheme: &'u str,
    /// With the password.
    user: &'u str,
    /// Hosts, each with its port if it has one.
    places: Vec<(&'u str, Option<&'u str>)>,
    database: &'u str,
}

impl<'u> Address<'u> {
    /// None if it names no user, no database, or no host, unless a parameter has that.
    pub(super) fn read(address: &'u str, parameters: &Parameters<'_>) -> Option<Self> {
        let (scheme, rest) = address.split_once("://")?;
        let (authority, database) = rest.split_once('/')?;
        // The last `@`, as in the driver: a password may have one that was not encoded.
        let (user, places) = authority.rsplit_once('@')?;
        let places: Vec<_> = places.split(',').map(place).collect();
        let has_host = parameters.get("host").is_some() || places.iter().any(|it| !it.0.is_empty());
        let name = user.split_once(':').map_or(user, |(name, _password)| name);
        let is_whole = !name.is_empty() && has_host && !database.trim_start_matches('/').is_empty();
        is_whole.then_some(Self { scheme, user, places, database })
    }

    pub(super) fn has_password(&self) -> bool {
        self.user.split_once(':').is_some_and(|(_name, password)| !password.is_empty())
    }

    /// The URL of each host, and whether it has a port.
    pub(super) fn urls(
        &self,
        parameters: &Parameters<'_>,
    ) -> Result<Vec<(String, bool)>, BadDatabaseUrl> {
        let by_parameter = parameters.get("host");
        let hosts: Vec<&str> = match by_parameter {
            Some(hosts) => hosts.split(',').collect(),
            None => self.places.iter().map(|(host, _port)| *host).collect(),
        };
        if hosts.len() > HOSTS_MAX || hosts.iter().any(|host| host.is_empty()) {
            return Err(BadDatabaseUrl::Hosts);
        }
        let ports = self.ports(parameters, hosts.len())?;
        let Self { scheme, user, database, .. } = self;
        let shared = parameters.shared();
        let url = |(host, port): (&str, Option<&str>)| {
            let (place, own) = match by_parameter {
                Some(_) => (PLACEHOLDER, format!("host={host}")),
                None => (host, String::new()),
            };
            let behind = port.map(|port| format!(":{port}")).unwrap_or_default();
            (format!("{scheme}://{user}@{place}{behind}/{database}?{shared}{own}"), port.is_some())
        };
        Ok(hosts.into_iter().zip(ports).map(url).collect())
    }

    /// The port of each of so many hosts, if it has one.
    fn ports(
        &self,
        parameters: &Parameters<'u>,
        hosts: usize,
    ) -> Result<Vec<Option<&'u str>>, BadDatabaseUrl> {
        let own: Vec<&str> = self.places.iter().filter_map(|(_host, port)| *port).collect();
        let (given, is_for_all) = match parameters.get("port") {
            // Of two places one would have no effect.
            Some(_) if !own.is_empty() => return Err(BadDatabaseUrl::Ports),
            Some(ports) => {
                let ports: Vec<&str> = ports.split(',').collect();
                let is_for_all = ports.len() == 1;
                (ports, is_for_all)
            }
            // A port of the address belongs to its host, unless that is the only one there.
            None => {
                let is_for_all = own.len() == 1 && self.places.len() == 1;
                (own, is_for_all)
            }
        };
        match given.first().copied() {
            None => Ok(vec![None; hosts]),
            Some(_) if given.iter().any(|port| port.is_empty()) => Err(BadDatabaseUrl::Ports),
            Some(port) if is_for_all => Ok(vec![Some(port); hosts]),
            Some(_) if given.len() == hosts => Ok(given.into_iter().map(Some).collect()),
            Some(_) => Err(BadDatabaseUrl::Ports),
        }
    }
}

/// Host and port of one place of an address.
fn place(text: &str) -> (&str, Option<&str>) {
    // The colons of an address in brackets are its own.
    let host_end = text.rfind(']').map_or(0, |at| at + 1);
    match text.get(host_end..).and_then(|behind| behind.rfind(':')) {
        Some(at) => {
            let (host, port) = text.split_at(host_end + at);
            (host, port.strip_prefix(':').filter(|port| !port.is_empty()))
        }
        None => (text, None),
    }
}
