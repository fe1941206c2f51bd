"""The service kit: what every long-running process of a system needs, written once.

`service`        the process: opened, run until it is stopped, closed in reverse order
`tasks`          periodic tasks: schedule, one process at a time, outages survived
`process_lock`   mutual exclusion among processes, by a lease in Redis
`backoff`        back-off with jitter, and retrying until it works
`waits`          waits that end early
`signals`        SIGTERM and SIGINT stop a service
`http`           answering requests, in JSON
`health`         `/health` and `/ready`
`metrics`        Prometheus metrics and `/metrics`
`configuration`  flags, environment variables and a TOML file
`configuration_listing`  every setting and where it was given
`commands`       the options that every service has
`http_client`    clients of HTTP APIs, which retry
`discord_rest`   Discord's REST API with its rate limits
`errors`         errors of platforms
`testing`        HTTP servers, faults, a simulator of Discord's REST API

The guide, docs/guide.md, builds a service with it.
"""
