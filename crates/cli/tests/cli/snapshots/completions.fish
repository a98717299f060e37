# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_overtake_global_optspecs
    string join \n url= ca-file= user= password-file= token-file= vhost= timeout= json q/quiet h/help V/version
end

function __fish_overtake_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_overtake_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_overtake_using_subcommand
    set -l cmd (__fish_overtake_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c overtake -n "__fish_overtake_needs_command" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_needs_command" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_needs_command" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_needs_command" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_needs_command" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_needs_command" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_needs_command" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_needs_command" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_needs_command" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_needs_command" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_needs_command" -s V -l version -d 'Print version'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "serve" -d 'Run the broker'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "config" -d 'Check or show the configuration the broker would run with'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "queue" -d 'Declare, list, show and delete queues'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "publish" -d 'Publish one message, or every line of a file'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "consume" -d 'Take a message out of a queue, the most urgent first'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "work" -d 'Run a program for each message of a queue, the most urgent first'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "subscribe" -d 'Run a program for each message of a category, as a member of a group of consumers: the primary lane first'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "peek" -d 'Look at messages and leave them where they are'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "top" -d 'Watch all queues: what waits, how urgent it is, how long it has waited, and who holds it'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "watch" -d 'Watch one queue, a line at a time: what is ready, leased, coming and going, how old, how long it waited'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "reprioritise" -d 'Give waiting messages another priority'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "reprioritize" -d 'Give waiting messages another priority'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "remove" -d 'Remove messages from a queue, wherever in their life they stand'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "cancel" -d 'Take messages back: those that wait, and those that somebody works on'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "purge" -d 'Remove everything that waits in a queue: what is ready or delayed. Leased messages stay with their consumers'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "replay" -d 'Put dead letters back into their lanes'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "move" -d 'Move what waits in a queue to another broker, each message once and in order'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "job" -d 'List, show and cancel jobs: changes of many messages, which go on between other requests'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "exec" -d 'Submit work to be executed, see how it goes, and steer it'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "schedule" -d 'Publish messages by a cron line: make, list, change and delete schedules'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "exchange" -d 'Declare, list, bind and delete exchanges, and publish to them'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "category" -d 'Make, list and delete categories of streams, each with groups of consumers and two lanes'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "relay" -d 'Publish what applications have written into an outbox table, the most urgent first'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "dlq" -d 'Look at dead letters of categories, put them back, or remove them'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "routes" -d 'Set, compare, list and try routes: who gets a copy of a message, how urgently, for how long'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "endpoint" -d 'Send what waits in queues to other systems: make, list, test, pause and delete endpoints'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "source" -d 'Take in what other systems have: make, list, test, pause and delete sources'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "store" -d 'Look at a store on disk, copy it and restore it'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "user" -d 'Make, list, change and delete users, and give them rights'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "vhost" -d 'Make, list, change and delete virtual hosts'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "policy" -d 'Set, list and remove policies'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "definitions" -d 'Write all that is declared into a file, and back'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "token" -d 'Make, list and revoke tokens'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "whoami" -d 'Show who the broker takes you for'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "audit" -d 'Show what administrators did last: who, what, when, and how it was before'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "health" -d 'Ask whether the broker serves'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "cluster" -d 'Show the brokers and servers of a broker on Redis or Valkey, and see to queues whose definition was lost'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "doctor" -d 'Say what a confirmed message survives where messages are kept, and what to change'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "drain" -d 'Prepare the broker for its end: it gives out nothing more, and waits for what is leased'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "completions" -d 'Print the completions of a shell'
complete -c overtake -n "__fish_overtake_needs_command" -f -a "man" -d 'Write the manual pages, one for each command, into a directory'
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l config -d 'The configuration file [default: $OVERTAKE_CONFIG, else overtake.toml in $CONFIGURATION_DIRECTORY or /etc/overtake if it is there]' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l http -d 'Address and port to serve HTTP on; port 0 takes a free one. [default: 127.0.0.1:15672]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l https -d 'Address and port to serve HTTP under TLS on, with the certificate of the section tls; off: it is not served. [default: off]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l max-request-bytes -d 'Largest body of one request; a larger one is refused with 413. [default: 64MiB]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l http-hosts -d 'Host names under which clients or a proxy reach the broker, with or without a port; IP addresses, localhost and the machine\'s own name are always served. Empty: clients on other machines may use any name, clients on this machine no other. [default: []]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l http-max-connections -d 'Most connections at once; on further ones only health probes are answered, anything else gets 503. [default: 10000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l http-header-timeout-ms -d 'How long a client may take to send the head of a request, and pause within a body; an idle connection is closed after it, too. [default: 30000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l amqp -d 'Address and port to serve AMQP 0-9-1 on; port 0 takes a free one; off: it is not served. [default: 127.0.0.1:5672]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l amqps -d 'Address and port to serve AMQP under TLS on, with the certificate of the section tls; 5671 is where clients look. [default: off]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l amqp-max-connections -d 'Most connections at once; further ones wait. [default: 20000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l amqp-max-channels -d 'Most channels of one connection. [default: 2047]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l amqp-heartbeat-ms -d 'How long a connection may be silent: the heartbeat that clients are asked for; they may ask for less. 0: for ever. [default: 60000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l amqp-send-timeout-ms -d 'How long a client may take no byte although some wait for it; then it is disconnected, however silent it may be. One that reads slowly is not. 0: for ever. [default: 60000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l tls-cert -d 'A PEM file with the broker\'s certificate and those between it and the authority.' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l tls-key -d 'A PEM file with the key of that certificate.' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l tls-client-ca -d 'A PEM file with the authorities that sign certificates of clients, which then are who those say (EXTERNAL). Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l admin-user -d 'An administrator who is made at start unless there is a user of this name. Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l admin-password-file -d 'The file with the password of that administrator; a line break at its end does not count.' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l load-definitions -d 'A file of definitions, ours or RabbitMQ\'s, that is imported at each start: what is there and the same stays as it is. Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l audit-file -d 'A file to which every administrative action is added, as a line of JSON. Empty: they are in the log only.' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l link-local-targets -d 'Whether endpoints and sources may connect to link-local addresses (169.254.0.0/16, fe80::/10) and to those where clouds serve metadata. [default: false]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l engine -d 'Where messages are kept: embedded, in a store on this machine; redis, on one server of Redis or Valkey; cluster, on a cluster of them. [default: embedded]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l engine-nodes -d 'For redis the server, for cluster some of its nodes, of which one that answers is enough: HOST:PORT, or rediss://HOST:PORT under TLS. [default: []]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l engine-username -d 'Who asks there, with a password. Empty: the user without a name.' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l engine-password -d 'Where the password for them is: { file = "…" } or { env = "…" }; read for each connection. [default: off]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l engine-replicas-acked -d 'Replicas that must have a message before it is confirmed: as many as can be promoted. auto: 1 for cluster, 0 for redis. [default: auto]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l engine-fsync-acked -d 'Whether it must be in the logs of them and of the primary, too (WAITAOF, from Redis 7.2 and Valkey 7.2 on). [default: false]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l engine-sweep-ms -d 'How often leases, delays and times to live that are over are looked for there, and heads of which no push came. [default: 1000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l engine-tls-ca -d 'A PEM file with the authorities that sign certificates of the servers. Empty: this machine\'s.' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l engine-tls-cert -d 'A PEM file with the certificate to show them. Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l engine-tls-key -d 'A PEM file with the key of that certificate.' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l data-dir -d 'The directory of the store. Unset: $STATE_DIRECTORY, else /var/lib/overtake, else $XDG_DATA_HOME/overtake.' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l shards -d 'Loops and journals that virtual hosts are spread over, each for a core, 1 to 32; of a store that has some it never becomes less. [default: 1]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l segment-bytes -d 'Size of one journal file. [default: 64MiB]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l memory-bytes -d 'Memory that waiting messages may take; beyond it the least urgent ones wait on disk only. [default: 128MiB]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l on-damage -d 'What to do when the store is damaged: refuse to start, or skip what is damaged and say so. [default: refuse]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l disk-low-bytes -d 'With less free on its disk publishes are refused. 0: when it is full; auto: a twentieth of the disk, at most 256MiB. [default: auto]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l disk-high-bytes -d 'With more free on its disk they are taken again. auto: one and a half times disk_low_bytes. [default: auto]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l routes-file -d 'A manifest with the routes of the virtual host `/`, JSON or TOML, set at start and whenever the file changes. Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l max-message-bytes -d 'Largest message; a queue may allow less. [default: 16MiB]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l default-ttl-ms -d 'Time to live of messages that have none from anywhere else; 0 is for ever. [default: 0]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l log-level -d 'What to log: error, warn, info, debug or trace, also per part as in `info,overtake_engine=debug`. [default: info]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l log-format -d 'How to log: text for people, json for machines. [default: text]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l otlp-endpoint -d 'Address of a collector that takes OTLP over HTTP, such as http://127.0.0.1:4318; off: nothing is pushed. [default: off]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l otlp-headers -d 'Headers for the collector, percent-encoded where need be; they are never shown.' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l otlp-interval-ms -d 'How often everything is pushed. [default: 60000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l traces-sample -d 'Of the traces that publishers sample, this share is told to the collector, 0 to 1; 0: none, and no message is looked at. [default: 0]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l trace-url -d 'Address of a page that shows a trace, with {trace_id} in it; answers about a traced message link to it. Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l service-name -d 'The name of the service that the broker says it is (service.name). [default: overtake]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l resource-attributes -d 'What else it says of itself, such as deployment.environment=prod, percent-encoded where need be.' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l drain-timeout-ms -d 'How long a stopping server waits for requests that are under way, and a drain for what is leased unless it is told. [default: 10000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l ports-file -d 'A file to write the bound addresses to, as JSON, once the server is ready. Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l connection-memory-bytes -d 'Memory for messages on their way: in requests, in line to be stored, pushed to clients that have not taken them. auto: a quarter of what the process may have, 32MiB to 512MiB. [default: auto]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l priority-lanes -d 'Whether what is below the threshold has a lane of its own, which is served when nothing else waits; else a category has one lane. [default: false]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l priority-lanes-threshold -d 'The least priority that is not backfill, a whole number. [default: 0]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l priority-lanes-suffix -d 'What the backfill lane of the category `customer` is called behind `customer:`. [default: backfill]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l queue -d 'Declare a queue at start, with settings as a TOML inline table. May be given again.' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand serve" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand serve" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand config; and not __fish_seen_subcommand_from check show" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and not __fish_seen_subcommand_from check show" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand config; and not __fish_seen_subcommand_from check show" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and not __fish_seen_subcommand_from check show" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand config; and not __fish_seen_subcommand_from check show" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand config; and not __fish_seen_subcommand_from check show" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and not __fish_seen_subcommand_from check show" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and not __fish_seen_subcommand_from check show" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand config; and not __fish_seen_subcommand_from check show" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand config; and not __fish_seen_subcommand_from check show" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand config; and not __fish_seen_subcommand_from check show" -f -a "check" -d 'Check the configuration, the files it names and, while no broker runs, what is stored in the data directory, and change nothing'
complete -c overtake -n "__fish_overtake_using_subcommand config; and not __fish_seen_subcommand_from check show" -f -a "show" -d 'Show the configuration in force, as a file that says the same'
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l config -d 'The configuration file [default: $OVERTAKE_CONFIG, else overtake.toml in $CONFIGURATION_DIRECTORY or /etc/overtake if it is there]' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l http -d 'Address and port to serve HTTP on; port 0 takes a free one. [default: 127.0.0.1:15672]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l https -d 'Address and port to serve HTTP under TLS on, with the certificate of the section tls; off: it is not served. [default: off]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l max-request-bytes -d 'Largest body of one request; a larger one is refused with 413. [default: 64MiB]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l http-hosts -d 'Host names under which clients or a proxy reach the broker, with or without a port; IP addresses, localhost and the machine\'s own name are always served. Empty: clients on other machines may use any name, clients on this machine no other. [default: []]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l http-max-connections -d 'Most connections at once; on further ones only health probes are answered, anything else gets 503. [default: 10000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l http-header-timeout-ms -d 'How long a client may take to send the head of a request, and pause within a body; an idle connection is closed after it, too. [default: 30000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l amqp -d 'Address and port to serve AMQP 0-9-1 on; port 0 takes a free one; off: it is not served. [default: 127.0.0.1:5672]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l amqps -d 'Address and port to serve AMQP under TLS on, with the certificate of the section tls; 5671 is where clients look. [default: off]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l amqp-max-connections -d 'Most connections at once; further ones wait. [default: 20000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l amqp-max-channels -d 'Most channels of one connection. [default: 2047]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l amqp-heartbeat-ms -d 'How long a connection may be silent: the heartbeat that clients are asked for; they may ask for less. 0: for ever. [default: 60000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l amqp-send-timeout-ms -d 'How long a client may take no byte although some wait for it; then it is disconnected, however silent it may be. One that reads slowly is not. 0: for ever. [default: 60000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l tls-cert -d 'A PEM file with the broker\'s certificate and those between it and the authority.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l tls-key -d 'A PEM file with the key of that certificate.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l tls-client-ca -d 'A PEM file with the authorities that sign certificates of clients, which then are who those say (EXTERNAL). Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l admin-user -d 'An administrator who is made at start unless there is a user of this name. Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l admin-password-file -d 'The file with the password of that administrator; a line break at its end does not count.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l load-definitions -d 'A file of definitions, ours or RabbitMQ\'s, that is imported at each start: what is there and the same stays as it is. Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l audit-file -d 'A file to which every administrative action is added, as a line of JSON. Empty: they are in the log only.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l link-local-targets -d 'Whether endpoints and sources may connect to link-local addresses (169.254.0.0/16, fe80::/10) and to those where clouds serve metadata. [default: false]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l engine -d 'Where messages are kept: embedded, in a store on this machine; redis, on one server of Redis or Valkey; cluster, on a cluster of them. [default: embedded]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l engine-nodes -d 'For redis the server, for cluster some of its nodes, of which one that answers is enough: HOST:PORT, or rediss://HOST:PORT under TLS. [default: []]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l engine-username -d 'Who asks there, with a password. Empty: the user without a name.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l engine-password -d 'Where the password for them is: { file = "…" } or { env = "…" }; read for each connection. [default: off]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l engine-replicas-acked -d 'Replicas that must have a message before it is confirmed: as many as can be promoted. auto: 1 for cluster, 0 for redis. [default: auto]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l engine-fsync-acked -d 'Whether it must be in the logs of them and of the primary, too (WAITAOF, from Redis 7.2 and Valkey 7.2 on). [default: false]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l engine-sweep-ms -d 'How often leases, delays and times to live that are over are looked for there, and heads of which no push came. [default: 1000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l engine-tls-ca -d 'A PEM file with the authorities that sign certificates of the servers. Empty: this machine\'s.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l engine-tls-cert -d 'A PEM file with the certificate to show them. Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l engine-tls-key -d 'A PEM file with the key of that certificate.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l data-dir -d 'The directory of the store. Unset: $STATE_DIRECTORY, else /var/lib/overtake, else $XDG_DATA_HOME/overtake.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l shards -d 'Loops and journals that virtual hosts are spread over, each for a core, 1 to 32; of a store that has some it never becomes less. [default: 1]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l segment-bytes -d 'Size of one journal file. [default: 64MiB]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l memory-bytes -d 'Memory that waiting messages may take; beyond it the least urgent ones wait on disk only. [default: 128MiB]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l on-damage -d 'What to do when the store is damaged: refuse to start, or skip what is damaged and say so. [default: refuse]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l disk-low-bytes -d 'With less free on its disk publishes are refused. 0: when it is full; auto: a twentieth of the disk, at most 256MiB. [default: auto]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l disk-high-bytes -d 'With more free on its disk they are taken again. auto: one and a half times disk_low_bytes. [default: auto]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l routes-file -d 'A manifest with the routes of the virtual host `/`, JSON or TOML, set at start and whenever the file changes. Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l max-message-bytes -d 'Largest message; a queue may allow less. [default: 16MiB]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l default-ttl-ms -d 'Time to live of messages that have none from anywhere else; 0 is for ever. [default: 0]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l log-level -d 'What to log: error, warn, info, debug or trace, also per part as in `info,overtake_engine=debug`. [default: info]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l log-format -d 'How to log: text for people, json for machines. [default: text]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l otlp-endpoint -d 'Address of a collector that takes OTLP over HTTP, such as http://127.0.0.1:4318; off: nothing is pushed. [default: off]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l otlp-headers -d 'Headers for the collector, percent-encoded where need be; they are never shown.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l otlp-interval-ms -d 'How often everything is pushed. [default: 60000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l traces-sample -d 'Of the traces that publishers sample, this share is told to the collector, 0 to 1; 0: none, and no message is looked at. [default: 0]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l trace-url -d 'Address of a page that shows a trace, with {trace_id} in it; answers about a traced message link to it. Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l service-name -d 'The name of the service that the broker says it is (service.name). [default: overtake]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l resource-attributes -d 'What else it says of itself, such as deployment.environment=prod, percent-encoded where need be.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l drain-timeout-ms -d 'How long a stopping server waits for requests that are under way, and a drain for what is leased unless it is told. [default: 10000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l ports-file -d 'A file to write the bound addresses to, as JSON, once the server is ready. Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l connection-memory-bytes -d 'Memory for messages on their way: in requests, in line to be stored, pushed to clients that have not taken them. auto: a quarter of what the process may have, 32MiB to 512MiB. [default: auto]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l priority-lanes -d 'Whether what is below the threshold has a lane of its own, which is served when nothing else waits; else a category has one lane. [default: false]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l priority-lanes-threshold -d 'The least priority that is not backfill, a whole number. [default: 0]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l priority-lanes-suffix -d 'What the backfill lane of the category `customer` is called behind `customer:`. [default: backfill]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l queue -d 'Declare a queue at start, with settings as a TOML inline table. May be given again.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l no-files -d 'Read neither the files it names nor the data directory: they are on another machine'
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l config -d 'The configuration file [default: $OVERTAKE_CONFIG, else overtake.toml in $CONFIGURATION_DIRECTORY or /etc/overtake if it is there]' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l http -d 'Address and port to serve HTTP on; port 0 takes a free one. [default: 127.0.0.1:15672]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l https -d 'Address and port to serve HTTP under TLS on, with the certificate of the section tls; off: it is not served. [default: off]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l max-request-bytes -d 'Largest body of one request; a larger one is refused with 413. [default: 64MiB]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l http-hosts -d 'Host names under which clients or a proxy reach the broker, with or without a port; IP addresses, localhost and the machine\'s own name are always served. Empty: clients on other machines may use any name, clients on this machine no other. [default: []]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l http-max-connections -d 'Most connections at once; on further ones only health probes are answered, anything else gets 503. [default: 10000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l http-header-timeout-ms -d 'How long a client may take to send the head of a request, and pause within a body; an idle connection is closed after it, too. [default: 30000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l amqp -d 'Address and port to serve AMQP 0-9-1 on; port 0 takes a free one; off: it is not served. [default: 127.0.0.1:5672]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l amqps -d 'Address and port to serve AMQP under TLS on, with the certificate of the section tls; 5671 is where clients look. [default: off]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l amqp-max-connections -d 'Most connections at once; further ones wait. [default: 20000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l amqp-max-channels -d 'Most channels of one connection. [default: 2047]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l amqp-heartbeat-ms -d 'How long a connection may be silent: the heartbeat that clients are asked for; they may ask for less. 0: for ever. [default: 60000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l amqp-send-timeout-ms -d 'How long a client may take no byte although some wait for it; then it is disconnected, however silent it may be. One that reads slowly is not. 0: for ever. [default: 60000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l tls-cert -d 'A PEM file with the broker\'s certificate and those between it and the authority.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l tls-key -d 'A PEM file with the key of that certificate.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l tls-client-ca -d 'A PEM file with the authorities that sign certificates of clients, which then are who those say (EXTERNAL). Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l admin-user -d 'An administrator who is made at start unless there is a user of this name. Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l admin-password-file -d 'The file with the password of that administrator; a line break at its end does not count.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l load-definitions -d 'A file of definitions, ours or RabbitMQ\'s, that is imported at each start: what is there and the same stays as it is. Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l audit-file -d 'A file to which every administrative action is added, as a line of JSON. Empty: they are in the log only.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l link-local-targets -d 'Whether endpoints and sources may connect to link-local addresses (169.254.0.0/16, fe80::/10) and to those where clouds serve metadata. [default: false]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l engine -d 'Where messages are kept: embedded, in a store on this machine; redis, on one server of Redis or Valkey; cluster, on a cluster of them. [default: embedded]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l engine-nodes -d 'For redis the server, for cluster some of its nodes, of which one that answers is enough: HOST:PORT, or rediss://HOST:PORT under TLS. [default: []]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l engine-username -d 'Who asks there, with a password. Empty: the user without a name.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l engine-password -d 'Where the password for them is: { file = "…" } or { env = "…" }; read for each connection. [default: off]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l engine-replicas-acked -d 'Replicas that must have a message before it is confirmed: as many as can be promoted. auto: 1 for cluster, 0 for redis. [default: auto]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l engine-fsync-acked -d 'Whether it must be in the logs of them and of the primary, too (WAITAOF, from Redis 7.2 and Valkey 7.2 on). [default: false]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l engine-sweep-ms -d 'How often leases, delays and times to live that are over are looked for there, and heads of which no push came. [default: 1000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l engine-tls-ca -d 'A PEM file with the authorities that sign certificates of the servers. Empty: this machine\'s.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l engine-tls-cert -d 'A PEM file with the certificate to show them. Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l engine-tls-key -d 'A PEM file with the key of that certificate.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l data-dir -d 'The directory of the store. Unset: $STATE_DIRECTORY, else /var/lib/overtake, else $XDG_DATA_HOME/overtake.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l shards -d 'Loops and journals that virtual hosts are spread over, each for a core, 1 to 32; of a store that has some it never becomes less. [default: 1]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l segment-bytes -d 'Size of one journal file. [default: 64MiB]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l memory-bytes -d 'Memory that waiting messages may take; beyond it the least urgent ones wait on disk only. [default: 128MiB]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l on-damage -d 'What to do when the store is damaged: refuse to start, or skip what is damaged and say so. [default: refuse]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l disk-low-bytes -d 'With less free on its disk publishes are refused. 0: when it is full; auto: a twentieth of the disk, at most 256MiB. [default: auto]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l disk-high-bytes -d 'With more free on its disk they are taken again. auto: one and a half times disk_low_bytes. [default: auto]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l routes-file -d 'A manifest with the routes of the virtual host `/`, JSON or TOML, set at start and whenever the file changes. Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l max-message-bytes -d 'Largest message; a queue may allow less. [default: 16MiB]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l default-ttl-ms -d 'Time to live of messages that have none from anywhere else; 0 is for ever. [default: 0]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l log-level -d 'What to log: error, warn, info, debug or trace, also per part as in `info,overtake_engine=debug`. [default: info]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l log-format -d 'How to log: text for people, json for machines. [default: text]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l otlp-endpoint -d 'Address of a collector that takes OTLP over HTTP, such as http://127.0.0.1:4318; off: nothing is pushed. [default: off]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l otlp-headers -d 'Headers for the collector, percent-encoded where need be; they are never shown.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l otlp-interval-ms -d 'How often everything is pushed. [default: 60000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l traces-sample -d 'Of the traces that publishers sample, this share is told to the collector, 0 to 1; 0: none, and no message is looked at. [default: 0]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l trace-url -d 'Address of a page that shows a trace, with {trace_id} in it; answers about a traced message link to it. Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l service-name -d 'The name of the service that the broker says it is (service.name). [default: overtake]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l resource-attributes -d 'What else it says of itself, such as deployment.environment=prod, percent-encoded where need be.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l drain-timeout-ms -d 'How long a stopping server waits for requests that are under way, and a drain for what is leased unless it is told. [default: 10000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l ports-file -d 'A file to write the bound addresses to, as JSON, once the server is ready. Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l connection-memory-bytes -d 'Memory for messages on their way: in requests, in line to be stored, pushed to clients that have not taken them. auto: a quarter of what the process may have, 32MiB to 512MiB. [default: auto]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l priority-lanes -d 'Whether what is below the threshold has a lane of its own, which is served when nothing else waits; else a category has one lane. [default: false]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l priority-lanes-threshold -d 'The least priority that is not backfill, a whole number. [default: 0]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l priority-lanes-suffix -d 'What the backfill lane of the category `customer` is called behind `customer:`. [default: backfill]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l queue -d 'Declare a queue at start, with settings as a TOML inline table. May be given again.' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l origin -d 'Say where each value comes from'
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand config; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and not __fish_seen_subcommand_from declare set pause resume list show delete" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and not __fish_seen_subcommand_from declare set pause resume list show delete" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and not __fish_seen_subcommand_from declare set pause resume list show delete" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and not __fish_seen_subcommand_from declare set pause resume list show delete" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and not __fish_seen_subcommand_from declare set pause resume list show delete" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and not __fish_seen_subcommand_from declare set pause resume list show delete" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and not __fish_seen_subcommand_from declare set pause resume list show delete" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and not __fish_seen_subcommand_from declare set pause resume list show delete" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and not __fish_seen_subcommand_from declare set pause resume list show delete" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and not __fish_seen_subcommand_from declare set pause resume list show delete" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and not __fish_seen_subcommand_from declare set pause resume list show delete" -f -a "declare" -d 'Make a queue, or check that the one that is there has these settings'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and not __fish_seen_subcommand_from declare set pause resume list show delete" -f -a "set" -d 'Change settings of a queue; those that are not given stay'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and not __fish_seen_subcommand_from declare set pause resume list show delete" -f -a "pause" -d 'Pause a queue: nothing more is given to consumers until it is resumed'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and not __fish_seen_subcommand_from declare set pause resume list show delete" -f -a "resume" -d 'Resume a queue that is paused'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and not __fish_seen_subcommand_from declare set pause resume list show delete" -f -a "list" -d 'List all queues'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and not __fish_seen_subcommand_from declare set pause resume list show delete" -f -a "show" -d 'Show a queue: its settings, and what is in each lane'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and not __fish_seen_subcommand_from declare set pause resume list show delete" -f -a "delete" -d 'Delete a queue with everything in it'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from declare" -l from -d 'Settings from a file, TOML or JSON; those given as KEY=VALUE win' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from declare" -l import-priority -d 'Where a queue in publish order begins to be served by priority: the priority of messages that wait without one, or `most-urgent`. With such messages, such a change is refused without it' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from declare" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from declare" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from declare" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from declare" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from declare" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from declare" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from declare" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from declare" -l replace -d 'Give a queue that is there all of these settings, and the defaults of those that are not given'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from declare" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from declare" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from declare" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from set" -l import-priority -d 'Where a queue in publish order begins to be served by priority: the priority of messages that wait without one, or `most-urgent`. With such messages, such a change is refused without it' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from set" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from set" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from set" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from set" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from set" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from set" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from set" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from set" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from set" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from set" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from pause" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from pause" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from pause" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from pause" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from pause" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from pause" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from pause" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from pause" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from pause" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from pause" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from resume" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from resume" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from resume" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from resume" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from resume" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from resume" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from resume" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from resume" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from resume" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from resume" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from list" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from list" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from list" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from list" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from list" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from list" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from list" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from list" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from show" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from show" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from show" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from show" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from show" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from show" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from show" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from show" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from delete" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from delete" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from delete" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from delete" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from delete" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from delete" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from delete" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from delete" -l if-empty -d 'Only when it holds no message'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from delete" -l if-unused -d 'Only when it has no consumer'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from delete" -s y -l yes -d 'Do not ask'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from delete" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from delete" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand queue; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand publish" -s p -l priority -d 'How urgent, in the words of the queue\'s scheme: a number or a name' -r
complete -c overtake -n "__fish_overtake_using_subcommand publish" -l key -d 'Its key, for last-value queues, groups and filters' -r
complete -c overtake -n "__fish_overtake_using_subcommand publish" -l key-weight -d 'The turns of its key beside those of others, where keys take turns and the queue\'s settings give this key no weight: 1 to 1000' -r
complete -c overtake -n "__fish_overtake_using_subcommand publish" -l ttl -d 'Never deliver it after so long: 250ms, 30s, 5m, 1h30m [default: as the queue says]' -r
complete -c overtake -n "__fish_overtake_using_subcommand publish" -l header -d 'A header. May be given again' -r
complete -c overtake -n "__fish_overtake_using_subcommand publish" -l content-type -d 'The media type of the body' -r
complete -c overtake -n "__fish_overtake_using_subcommand publish" -l id -d 'Its id: makes publishing it again harmless while it is pending' -r
complete -c overtake -n "__fish_overtake_using_subcommand publish" -l delay -d 'Do not deliver it before so long' -r
complete -c overtake -n "__fish_overtake_using_subcommand publish" -l lines -d 'Publish each line of this file (- is stdin) as a message' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand publish" -l batch -d 'Most messages of one request' -r
complete -c overtake -n "__fish_overtake_using_subcommand publish" -l in-flight -d 'Requests under way at once. With more than 1 batches may overtake each other, so lines of one priority are no longer in the order of the file' -r
complete -c overtake -n "__fish_overtake_using_subcommand publish" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand publish" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand publish" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand publish" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand publish" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand publish" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand publish" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand publish" -l json-lines -d 'Each line is a message as the HTTP API takes it: {"body":…,"priority":…,…}. Flags fill in what it lacks'
complete -c overtake -n "__fish_overtake_using_subcommand publish" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand publish" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand publish" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand consume" -s n -l count -d 'Stop after so many messages [default: 1]' -r
complete -c overtake -n "__fish_overtake_using_subcommand consume" -s w -l wait -d 'Wait for messages: so long for each, or for ever' -r
complete -c overtake -n "__fish_overtake_using_subcommand consume" -l max -d 'Lease at most so many messages with one request, of those that --count or --all takes. What was leased is printed before what becomes urgent later, so 1 is strictest' -r
complete -c overtake -n "__fish_overtake_using_subcommand consume" -l visibility-timeout -d 'How long the broker waits for the acknowledgement; 0: for ever [default: as the queue says]' -r
complete -c overtake -n "__fish_overtake_using_subcommand consume" -l name -d 'What this consumer calls itself, for people who ask who holds a message [default: HOST:PID]' -r
complete -c overtake -n "__fish_overtake_using_subcommand consume" -l delay -d 'With --nack: wait so long before the next attempt [default: the queue\'s backoff]' -r
complete -c overtake -n "__fish_overtake_using_subcommand consume" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand consume" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand consume" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand consume" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand consume" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand consume" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand consume" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand consume" -l all -d 'Take every message that is ready; with --wait also those that come later'
complete -c overtake -n "__fish_overtake_using_subcommand consume" -l ack -d 'Acknowledge after printing. This is the default'
complete -c overtake -n "__fish_overtake_using_subcommand consume" -l no-ack -d 'Leave the messages leased: they come back when their leases end'
complete -c overtake -n "__fish_overtake_using_subcommand consume" -l nack -d 'Say that it failed: the message is put back for another attempt'
complete -c overtake -n "__fish_overtake_using_subcommand consume" -l reject -d 'Say that it can never be done: the message becomes a dead letter'
complete -c overtake -n "__fish_overtake_using_subcommand consume" -s 0 -l null -d 'End each body with a zero byte instead of a line feed'
complete -c overtake -n "__fish_overtake_using_subcommand consume" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand consume" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand consume" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand work" -s j -l slots -d 'Run so many programs at once' -r
complete -c overtake -n "__fish_overtake_using_subcommand work" -s n -l max -d 'Stop after so many messages' -r
complete -c overtake -n "__fish_overtake_using_subcommand work" -l lease -d 'Lease each message for so long. While its program runs it is extended every third of that' -r
complete -c overtake -n "__fish_overtake_using_subcommand work" -l grace -d 'Between SIGTERM and SIGKILL, when a program has to end' -r
complete -c overtake -n "__fish_overtake_using_subcommand work" -l reject-on -d 'Exit codes that say it can never be done: the message becomes a dead letter at once' -r
complete -c overtake -n "__fish_overtake_using_subcommand work" -l delay -d 'Wait so long before the next attempt of what failed [default: the queue\'s backoff]' -r
complete -c overtake -n "__fish_overtake_using_subcommand work" -l keep -d 'Keep so much of the end of what a program prints, at most 24KiB' -r
complete -c overtake -n "__fish_overtake_using_subcommand work" -l name -d 'What the worker calls itself, for people who ask who holds a message [default: HOST:PID]' -r
complete -c overtake -n "__fish_overtake_using_subcommand work" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand work" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand work" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand work" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand work" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand work" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand work" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand work" -l until-empty -d 'Stop when nothing runs and there is nothing to lease. Delayed messages are not waited for'
complete -c overtake -n "__fish_overtake_using_subcommand work" -l show -d 'Pass on what the programs print, each line behind the id of its message, to standard error'
complete -c overtake -n "__fish_overtake_using_subcommand work" -l lines -d 'Print lines on a terminal, too'
complete -c overtake -n "__fish_overtake_using_subcommand work" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand work" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand work" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -s c -l category -d 'The category' -r
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -s g -l group -d 'The group of consumers: its members share its messages' -r
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -s j -l slots -d 'Run so many programs at once' -r
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -s n -l max -d 'Stop after so many messages' -r
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l lease -d 'Lease each message for so long. While its program runs it is extended every third of that' -r
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l grace -d 'Between SIGTERM and SIGKILL, when a program has to end' -r
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l reject-on -d 'Exit codes that say it can never be done: the message becomes a dead letter at once' -r
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l delay -d 'Wait so long before the next attempt of what failed [default: the queue\'s backoff]' -r
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l keep -d 'Keep so much of the end of what a program prints, at most 24KiB' -r
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l name -d 'What the worker calls itself, for people who ask who holds a message [default: HOST:PID]' -r
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l redis-password-file -d 'A file with the password of the user in the URL, or of the one without a name [else: OVERTAKE_REDIS_PASSWORD]' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l priority-lanes -d 'Whether categories have a backfill lane, as whoever writes them has it [else: OVERTAKE__SERVER__PRIORITY_LANES__ENABLED; else both lanes are read]' -r -f -a "true\t''
false\t''"
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l priority-lanes-threshold -d 'The least priority that is not backfill [else: OVERTAKE__SERVER__PRIORITY_LANES__THRESHOLD; else 0]' -r
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l priority-lanes-suffix -d 'What the backfill lane of `customer` is called behind `customer:` [else: OVERTAKE__SERVER__PRIORITY_LANES__BACKFILL_SUFFIX; else backfill]' -r
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l attempts -d 'So often an entry is tried before it is a dead letter' -r
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l claim-idle -d 'What another consumer has not settled for so long is taken over' -r
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l primary-slots -d 'How many of the `--slots` never run a program for the backfill lane: an urgent entry finds one free while bulk work is slow' -r
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l until-empty -d 'Stop when nothing runs and there is nothing to lease. Delayed messages are not waited for'
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l show -d 'Pass on what the programs print, each line behind the id of its message, to standard error'
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l lines -d 'Print lines on a terminal, too'
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l one-lane -d 'The same as --priority-lanes=false'
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l from-now -d 'A group that is made begins with what is added from now on, in place of the oldest entry'
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l partitions -d 'The category is parted by keys: the streams of each partition are read, too, and the group has one entry of each at a time'
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand subscribe" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand peek" -l id -d 'Only the message with this id, with its position' -r
complete -c overtake -n "__fish_overtake_using_subcommand peek" -s n -l limit -d 'At most so many' -r
complete -c overtake -n "__fish_overtake_using_subcommand peek" -l order -d 'In which order' -r -f -a "dispatch\t'As they will be leased'
published\t'As they were published'
newest\t'The last published first'"
complete -c overtake -n "__fish_overtake_using_subcommand peek" -l status -d 'Only messages that stand so' -r -f -a "ready\t'In its lane'
delayed\t'Out of the lanes until due'
leased\t'Lent to a consumer'
dead\t'A dead letter'"
complete -c overtake -n "__fish_overtake_using_subcommand peek" -l priority -d 'Only messages of this priority, in the words of the queue\'s scheme' -r
complete -c overtake -n "__fish_overtake_using_subcommand peek" -l key -d 'Only messages with this key' -r
complete -c overtake -n "__fish_overtake_using_subcommand peek" -l header -d 'Only messages with this header. May be given again' -r
complete -c overtake -n "__fish_overtake_using_subcommand peek" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand peek" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand peek" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand peek" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand peek" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand peek" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand peek" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand peek" -l without-priority -d 'Only messages that were published without a priority'
complete -c overtake -n "__fish_overtake_using_subcommand peek" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand peek" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand peek" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand top" -l interval -d 'Between two polls, 200ms or longer' -r
complete -c overtake -n "__fish_overtake_using_subcommand top" -l queue -d 'Only queues whose names are like this: * is any text, ? any character' -r
complete -c overtake -n "__fish_overtake_using_subcommand top" -l sort -d 'What comes first' -r -f -a "trouble\t'Where the most urgent of what waits has waited longest'
ready\t'Where most is ready'
in\t'Where most comes in'
out\t'Where most goes out'
name\t'By name'"
complete -c overtake -n "__fish_overtake_using_subcommand top" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand top" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand top" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand top" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand top" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand top" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand top" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand top" -l once -d 'Print one frame as text, and end'
complete -c overtake -n "__fish_overtake_using_subcommand top" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand top" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand top" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand watch" -l interval -d 'Between two lines, 200ms or longer' -r
complete -c overtake -n "__fish_overtake_using_subcommand watch" -s n -l count -d 'End after so many lines' -r
complete -c overtake -n "__fish_overtake_using_subcommand watch" -l warn-age -d 'Say when the oldest message has waited so long' -r
complete -c overtake -n "__fish_overtake_using_subcommand watch" -l for -d 'End after so long' -r
complete -c overtake -n "__fish_overtake_using_subcommand watch" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand watch" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand watch" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand watch" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand watch" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand watch" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand watch" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand watch" -l until-idle -d 'End when nothing is ready and nothing leased'
complete -c overtake -n "__fish_overtake_using_subcommand watch" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand watch" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand watch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand reprioritise" -l to -d 'The new priority, in the words of the queue\'s scheme' -r
complete -c overtake -n "__fish_overtake_using_subcommand reprioritise" -l status -d 'Only messages that stand so' -r -f -a "ready\t'In its lane'
delayed\t'Out of the lanes until due'
leased\t'Lent to a consumer'
dead\t'A dead letter'"
complete -c overtake -n "__fish_overtake_using_subcommand reprioritise" -l priority -d 'Only messages of this priority, in the words of the queue\'s scheme' -r
complete -c overtake -n "__fish_overtake_using_subcommand reprioritise" -l key -d 'Only messages with this key' -r
complete -c overtake -n "__fish_overtake_using_subcommand reprioritise" -l header -d 'Only messages with this header. May be given again' -r
complete -c overtake -n "__fish_overtake_using_subcommand reprioritise" -l expect -d 'Do it only if conditions or --all select exactly so many messages, such as those a look showed before' -r
complete -c overtake -n "__fish_overtake_using_subcommand reprioritise" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand reprioritise" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand reprioritise" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand reprioritise" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand reprioritise" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand reprioritise" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand reprioritise" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand reprioritise" -l without-priority -d 'Only messages that were published without a priority'
complete -c overtake -n "__fish_overtake_using_subcommand reprioritise" -l all -d 'Every message. Must be said'
complete -c overtake -n "__fish_overtake_using_subcommand reprioritise" -s y -l yes -d 'Do not ask'
complete -c overtake -n "__fish_overtake_using_subcommand reprioritise" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand reprioritise" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand reprioritise" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand reprioritize" -l to -d 'The new priority, in the words of the queue\'s scheme' -r
complete -c overtake -n "__fish_overtake_using_subcommand reprioritize" -l status -d 'Only messages that stand so' -r -f -a "ready\t'In its lane'
delayed\t'Out of the lanes until due'
leased\t'Lent to a consumer'
dead\t'A dead letter'"
complete -c overtake -n "__fish_overtake_using_subcommand reprioritize" -l priority -d 'Only messages of this priority, in the words of the queue\'s scheme' -r
complete -c overtake -n "__fish_overtake_using_subcommand reprioritize" -l key -d 'Only messages with this key' -r
complete -c overtake -n "__fish_overtake_using_subcommand reprioritize" -l header -d 'Only messages with this header. May be given again' -r
complete -c overtake -n "__fish_overtake_using_subcommand reprioritize" -l expect -d 'Do it only if conditions or --all select exactly so many messages, such as those a look showed before' -r
complete -c overtake -n "__fish_overtake_using_subcommand reprioritize" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand reprioritize" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand reprioritize" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand reprioritize" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand reprioritize" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand reprioritize" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand reprioritize" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand reprioritize" -l without-priority -d 'Only messages that were published without a priority'
complete -c overtake -n "__fish_overtake_using_subcommand reprioritize" -l all -d 'Every message. Must be said'
complete -c overtake -n "__fish_overtake_using_subcommand reprioritize" -s y -l yes -d 'Do not ask'
complete -c overtake -n "__fish_overtake_using_subcommand reprioritize" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand reprioritize" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand reprioritize" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand remove" -l status -d 'Only messages that stand so' -r -f -a "ready\t'In its lane'
delayed\t'Out of the lanes until due'
leased\t'Lent to a consumer'
dead\t'A dead letter'"
complete -c overtake -n "__fish_overtake_using_subcommand remove" -l priority -d 'Only messages of this priority, in the words of the queue\'s scheme' -r
complete -c overtake -n "__fish_overtake_using_subcommand remove" -l key -d 'Only messages with this key' -r
complete -c overtake -n "__fish_overtake_using_subcommand remove" -l header -d 'Only messages with this header. May be given again' -r
complete -c overtake -n "__fish_overtake_using_subcommand remove" -l expect -d 'Do it only if conditions or --all select exactly so many messages, such as those a look showed before' -r
complete -c overtake -n "__fish_overtake_using_subcommand remove" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand remove" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand remove" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand remove" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand remove" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand remove" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand remove" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand remove" -l without-priority -d 'Only messages that were published without a priority'
complete -c overtake -n "__fish_overtake_using_subcommand remove" -l all -d 'Every message. Must be said'
complete -c overtake -n "__fish_overtake_using_subcommand remove" -s y -l yes -d 'Do not ask'
complete -c overtake -n "__fish_overtake_using_subcommand remove" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand remove" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand remove" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand cancel" -l status -d 'Only messages that stand so' -r -f -a "ready\t'In its lane'
delayed\t'Out of the lanes until due'
leased\t'Lent to a consumer'
dead\t'A dead letter'"
complete -c overtake -n "__fish_overtake_using_subcommand cancel" -l priority -d 'Only messages of this priority, in the words of the queue\'s scheme' -r
complete -c overtake -n "__fish_overtake_using_subcommand cancel" -l key -d 'Only messages with this key' -r
complete -c overtake -n "__fish_overtake_using_subcommand cancel" -l header -d 'Only messages with this header. May be given again' -r
complete -c overtake -n "__fish_overtake_using_subcommand cancel" -l expect -d 'Do it only if conditions or --all select exactly so many messages, such as those a look showed before' -r
complete -c overtake -n "__fish_overtake_using_subcommand cancel" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand cancel" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand cancel" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand cancel" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand cancel" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand cancel" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand cancel" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand cancel" -l without-priority -d 'Only messages that were published without a priority'
complete -c overtake -n "__fish_overtake_using_subcommand cancel" -l all -d 'Every message. Must be said'
complete -c overtake -n "__fish_overtake_using_subcommand cancel" -s y -l yes -d 'Do not ask'
complete -c overtake -n "__fish_overtake_using_subcommand cancel" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand cancel" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand cancel" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand purge" -l status -d 'Only what stands so: ready, delayed or dead' -r -f -a "ready\t'In its lane'
delayed\t'Out of the lanes until due'
leased\t'Lent to a consumer'
dead\t'A dead letter'"
complete -c overtake -n "__fish_overtake_using_subcommand purge" -l expect -d 'Do it only if exactly so many messages are removed by it' -r
complete -c overtake -n "__fish_overtake_using_subcommand purge" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand purge" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand purge" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand purge" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand purge" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand purge" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand purge" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand purge" -s y -l yes -d 'Do not ask'
complete -c overtake -n "__fish_overtake_using_subcommand purge" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand purge" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand purge" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand replay" -l status -d 'Only messages that stand so' -r -f -a "ready\t'In its lane'
delayed\t'Out of the lanes until due'
leased\t'Lent to a consumer'
dead\t'A dead letter'"
complete -c overtake -n "__fish_overtake_using_subcommand replay" -l priority -d 'Only messages of this priority, in the words of the queue\'s scheme' -r
complete -c overtake -n "__fish_overtake_using_subcommand replay" -l key -d 'Only messages with this key' -r
complete -c overtake -n "__fish_overtake_using_subcommand replay" -l header -d 'Only messages with this header. May be given again' -r
complete -c overtake -n "__fish_overtake_using_subcommand replay" -l expect -d 'Do it only if conditions or --all select exactly so many messages, such as those a look showed before' -r
complete -c overtake -n "__fish_overtake_using_subcommand replay" -l promote -d 'With this priority instead of the one they had' -r
complete -c overtake -n "__fish_overtake_using_subcommand replay" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand replay" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand replay" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand replay" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand replay" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand replay" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand replay" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand replay" -l without-priority -d 'Only messages that were published without a priority'
complete -c overtake -n "__fish_overtake_using_subcommand replay" -l all -d 'Every message. Must be said'
complete -c overtake -n "__fish_overtake_using_subcommand replay" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand replay" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand replay" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand move" -l to -d 'The broker it goes to: the address of its HTTP API' -r
complete -c overtake -n "__fish_overtake_using_subcommand move" -l as -d 'The name of the queue there, if it is another' -r
complete -c overtake -n "__fish_overtake_using_subcommand move" -l to-vhost -d 'The virtual host there, if it is another' -r
complete -c overtake -n "__fish_overtake_using_subcommand move" -l to-user -d 'Who asks there. The password is in OVERTAKE_TO_PASSWORD or --to-password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand move" -l to-password-file -d 'A file with the password of --to-user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand move" -l to-token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TO_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand move" -l to-ca-file -d 'For https: a PEM file with the authorities that may sign the certificate there, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand move" -l state -d 'The file that keeps what is under way: overtake-move.QUEUE.json in this directory. It is removed at the end' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand move" -l import-priority -d 'The priority of messages published without one, where the queue here is served in publish order and the one there by priority: `most-urgent`, or a priority of the queue there. Such messages are not moved without it' -r
complete -c overtake -n "__fish_overtake_using_subcommand move" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand move" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand move" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand move" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand move" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand move" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand move" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand move" -l delete -d 'Delete the queue here when nothing is in it any more'
complete -c overtake -n "__fish_overtake_using_subcommand move" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand move" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand move" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand job; and not __fish_seen_subcommand_from list show cancel" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand job; and not __fish_seen_subcommand_from list show cancel" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand job; and not __fish_seen_subcommand_from list show cancel" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand job; and not __fish_seen_subcommand_from list show cancel" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand job; and not __fish_seen_subcommand_from list show cancel" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand job; and not __fish_seen_subcommand_from list show cancel" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand job; and not __fish_seen_subcommand_from list show cancel" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand job; and not __fish_seen_subcommand_from list show cancel" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand job; and not __fish_seen_subcommand_from list show cancel" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand job; and not __fish_seen_subcommand_from list show cancel" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand job; and not __fish_seen_subcommand_from list show cancel" -f -a "list" -d 'List changes of many messages: those that go on, and the last that are over'
complete -c overtake -n "__fish_overtake_using_subcommand job; and not __fish_seen_subcommand_from list show cancel" -f -a "show" -d 'Show how far a job is'
complete -c overtake -n "__fish_overtake_using_subcommand job; and not __fish_seen_subcommand_from list show cancel" -f -a "cancel" -d 'Cancel a job: it ends where it is, and what it has changed stays changed. A job that is over stays as it is'
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from list" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from list" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from list" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from list" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from list" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from list" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from list" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from list" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from show" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from show" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from show" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from show" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from show" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from show" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from show" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from show" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from cancel" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from cancel" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from cancel" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from cancel" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from cancel" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from cancel" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from cancel" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from cancel" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from cancel" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand job; and __fish_seen_subcommand_from cancel" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and not __fish_seen_subcommand_from create submit list show cancel retry reprioritise reprioritize status pause resume limit" -l queue -d 'The queue' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and not __fish_seen_subcommand_from create submit list show cancel retry reprioritise reprioritize status pause resume limit" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and not __fish_seen_subcommand_from create submit list show cancel retry reprioritise reprioritize status pause resume limit" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and not __fish_seen_subcommand_from create submit list show cancel retry reprioritise reprioritize status pause resume limit" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and not __fish_seen_subcommand_from create submit list show cancel retry reprioritise reprioritize status pause resume limit" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and not __fish_seen_subcommand_from create submit list show cancel retry reprioritise reprioritize status pause resume limit" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and not __fish_seen_subcommand_from create submit list show cancel retry reprioritise reprioritize status pause resume limit" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and not __fish_seen_subcommand_from create submit list show cancel retry reprioritise reprioritize status pause resume limit" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and not __fish_seen_subcommand_from create submit list show cancel retry reprioritise reprioritize status pause resume limit" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and not __fish_seen_subcommand_from create submit list show cancel retry reprioritise reprioritize status pause resume limit" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and not __fish_seen_subcommand_from create submit list show cancel retry reprioritise reprioritize status pause resume limit" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and not __fish_seen_subcommand_from create submit list show cancel retry reprioritise reprioritize status pause resume limit" -f -a "create" -d 'Make a queue of executions, and the queue of what is finished, its history'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and not __fish_seen_subcommand_from create submit list show cancel retry reprioritise reprioritize status pause resume limit" -f -a "submit" -d 'Submit work to be executed'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and not __fish_seen_subcommand_from create submit list show cancel retry reprioritise reprioritize status pause resume limit" -f -a "list" -d 'List executions: first those that wait or run, the last submitted first; then what is finished, the last finished first'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and not __fish_seen_subcommand_from create submit list show cancel retry reprioritise reprioritize status pause resume limit" -f -a "show" -d 'Show one execution, with what it printed at the end'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and not __fish_seen_subcommand_from create submit list show cancel retry reprioritise reprioritize status pause resume limit" -f -a "cancel" -d 'Take executions back: what waits is cancelled at once, what runs is asked to end'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and not __fish_seen_subcommand_from create submit list show cancel retry reprioritise reprioritize status pause resume limit" -f -a "retry" -d 'Have executions that are finished done once more, as new'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and not __fish_seen_subcommand_from create submit list show cancel retry reprioritise reprioritize status pause resume limit" -f -a "reprioritise" -d 'Give an execution that waits another priority; it keeps its age'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and not __fish_seen_subcommand_from create submit list show cancel retry reprioritise reprioritize status pause resume limit" -f -a "reprioritize" -d 'Give an execution that waits another priority; it keeps its age'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and not __fish_seen_subcommand_from create submit list show cancel retry reprioritise reprioritize status pause resume limit" -f -a "status" -d 'Show how many wait and run, and how many may run at once'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and not __fish_seen_subcommand_from create submit list show cancel retry reprioritise reprioritize status pause resume limit" -f -a "pause" -d 'From now on none begins; what runs goes on'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and not __fish_seen_subcommand_from create submit list show cancel retry reprioritise reprioritize status pause resume limit" -f -a "resume" -d 'Let executions begin again'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and not __fish_seen_subcommand_from create submit list show cancel retry reprioritise reprioritize status pause resume limit" -f -a "limit" -d 'Say how many may run at once. What runs already goes on'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from create" -l max-concurrent -d 'Most executions that run at once; 0: as many as workers take. [default: 10]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from create" -l history -d 'Forget what has been finished for so long: 24h, 7d; 0: never. [default: 24h]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from create" -l history-count -d 'Remember at most so many of them; 0: no limit. [default: 10000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from create" -l attempts -d 'Begin one that fails at most so often; 0: no limit. [default: 3]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from create" -l backoff -d 'Wait so long before the second attempt, and twice as long before each further one, up to a minute. [default: 1s]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from create" -l run-timeout -d 'End one that runs for longer; 0: none. [default: 0]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from create" -l queue -d 'The queue' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from create" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from create" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from create" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from create" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from create" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from create" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from create" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from create" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from create" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from create" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from submit" -l for -d 'Whose it is, if not your own; administrators submit others\'' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from submit" -s p -l priority -d 'How urgent, in the words of the queue\'s scheme: a number or a name' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from submit" -l key -d 'Its key, for last-value queues, groups and filters' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from submit" -l key-weight -d 'The turns of its key beside those of others, where keys take turns and the queue\'s settings give this key no weight: 1 to 1000' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from submit" -l ttl -d 'Never deliver it after so long: 250ms, 30s, 5m, 1h30m [default: as the queue says]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from submit" -l header -d 'A header. May be given again' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from submit" -l content-type -d 'The media type of the body' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from submit" -l id -d 'Its id: makes publishing it again harmless while it is pending' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from submit" -l delay -d 'Do not deliver it before so long' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from submit" -l queue -d 'The queue' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from submit" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from submit" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from submit" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from submit" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from submit" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from submit" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from submit" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from submit" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from submit" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from submit" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from list" -l status -d 'Only what is so far' -r -f -a "queued\t'It waits for its turn'
delayed\t'It is not to begin yet'
running\t'Somebody works on it'
completed\t'It was done'
failed\t'It was rejected, or failed too often'
timeout\t'It took too long, or expired'
cancelled\t'Somebody took it back'"
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from list" -l priority -d 'Only of this priority, in the words of the queue\'s scheme' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from list" -l for -d 'Only of this user' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from list" -s n -l limit -d 'At most so many' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from list" -l skip -d 'Leave out so many first' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from list" -l queue -d 'The queue' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from list" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from list" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from list" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from list" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from list" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from list" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from list" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from list" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from show" -l queue -d 'The queue' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from show" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from show" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from show" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from show" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from show" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from show" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from show" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from show" -s f -l follow -d 'Wait for its end, and print what it prints as that comes. Exit code 1 unless it completes'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from show" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from cancel" -l queue -d 'The queue' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from cancel" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from cancel" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from cancel" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from cancel" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from cancel" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from cancel" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from cancel" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from cancel" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from cancel" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from cancel" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from retry" -l queue -d 'The queue' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from retry" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from retry" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from retry" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from retry" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from retry" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from retry" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from retry" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from retry" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from retry" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from retry" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from reprioritise" -l queue -d 'The queue' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from reprioritise" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from reprioritise" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from reprioritise" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from reprioritise" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from reprioritise" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from reprioritise" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from reprioritise" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from reprioritise" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from reprioritise" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from reprioritise" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from reprioritize" -l queue -d 'The queue' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from reprioritize" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from reprioritize" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from reprioritize" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from reprioritize" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from reprioritize" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from reprioritize" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from reprioritize" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from reprioritize" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from reprioritize" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from reprioritize" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from status" -l queue -d 'The queue' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from status" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from status" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from status" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from status" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from status" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from status" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from status" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from status" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from status" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from pause" -l queue -d 'The queue' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from pause" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from pause" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from pause" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from pause" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from pause" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from pause" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from pause" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from pause" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from pause" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from pause" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from resume" -l queue -d 'The queue' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from resume" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from resume" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from resume" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from resume" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from resume" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from resume" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from resume" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from resume" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from resume" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from resume" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from limit" -l queue -d 'The queue' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from limit" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from limit" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from limit" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from limit" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from limit" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from limit" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from limit" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from limit" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from limit" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand exec; and __fish_seen_subcommand_from limit" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and not __fish_seen_subcommand_from put list show delete" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and not __fish_seen_subcommand_from put list show delete" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and not __fish_seen_subcommand_from put list show delete" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and not __fish_seen_subcommand_from put list show delete" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and not __fish_seen_subcommand_from put list show delete" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and not __fish_seen_subcommand_from put list show delete" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and not __fish_seen_subcommand_from put list show delete" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and not __fish_seen_subcommand_from put list show delete" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and not __fish_seen_subcommand_from put list show delete" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and not __fish_seen_subcommand_from put list show delete" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and not __fish_seen_subcommand_from put list show delete" -f -a "put" -d 'Make a schedule, or change the one of this name: a message is published to a queue whenever a cron line says so'
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and not __fish_seen_subcommand_from put list show delete" -f -a "list" -d 'List the schedules whose queues you may see'
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and not __fish_seen_subcommand_from put list show delete" -f -a "show" -d 'Show a schedule, its next five occurrences, and what it publishes'
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and not __fish_seen_subcommand_from put list show delete" -f -a "delete" -d 'Delete a schedule with the occurrence that waits; what is due already stays'
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from put" -l timezone -d 'The time zone in which the line is read' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from put" -s p -l priority -d 'How urgent, in the words of the queue\'s scheme: a number or a name' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from put" -l key -d 'Its key, for last-value queues, groups and filters' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from put" -l key-weight -d 'The turns of its key beside those of others, where keys take turns and the queue\'s settings give this key no weight: 1 to 1000' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from put" -l ttl -d 'Never deliver it after so long: 250ms, 30s, 5m, 1h30m [default: as the queue says]' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from put" -l header -d 'A header. May be given again' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from put" -l content-type -d 'The media type of the body' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from put" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from put" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from put" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from put" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from put" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from put" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from put" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from put" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from put" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from put" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from list" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from list" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from list" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from list" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from list" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from list" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from list" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from list" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from show" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from show" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from show" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from show" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from show" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from show" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from show" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from show" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from delete" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from delete" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from delete" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from delete" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from delete" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from delete" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from delete" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from delete" -s y -l yes -d 'Do not ask'
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from delete" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from delete" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand schedule; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and not __fish_seen_subcommand_from declare list delete bind unbind publish" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and not __fish_seen_subcommand_from declare list delete bind unbind publish" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and not __fish_seen_subcommand_from declare list delete bind unbind publish" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and not __fish_seen_subcommand_from declare list delete bind unbind publish" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and not __fish_seen_subcommand_from declare list delete bind unbind publish" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and not __fish_seen_subcommand_from declare list delete bind unbind publish" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and not __fish_seen_subcommand_from declare list delete bind unbind publish" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and not __fish_seen_subcommand_from declare list delete bind unbind publish" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and not __fish_seen_subcommand_from declare list delete bind unbind publish" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and not __fish_seen_subcommand_from declare list delete bind unbind publish" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and not __fish_seen_subcommand_from declare list delete bind unbind publish" -f -a "declare" -d 'Make an exchange, or find the one that is there and is the same'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and not __fish_seen_subcommand_from declare list delete bind unbind publish" -f -a "list" -d 'List all exchanges, or the bindings of one'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and not __fish_seen_subcommand_from declare list delete bind unbind publish" -f -a "delete" -d 'Delete an exchange with the bindings of it and to it. Queues and messages stay'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and not __fish_seen_subcommand_from declare list delete bind unbind publish" -f -a "bind" -d 'Bind a queue, or another exchange, to an exchange'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and not __fish_seen_subcommand_from declare list delete bind unbind publish" -f -a "unbind" -d 'Take a binding away: the one that is the same in everything'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and not __fish_seen_subcommand_from declare list delete bind unbind publish" -f -a "publish" -d 'Publish a message through an exchange'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from declare" -l alternate -d 'The exchange that gets what this one has no binding for' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from declare" -l hash-header -d 'Share out by this header, not by the routing key' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from declare" -l hash-property -d 'Share out by this property: message_id, correlation_id or timestamp' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from declare" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from declare" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from declare" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from declare" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from declare" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from declare" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from declare" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from declare" -l transient -d 'It is gone after a restart'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from declare" -l auto-delete -d 'It goes with its last binding'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from declare" -l internal -d 'Nobody publishes to it: it gets what other exchanges give it'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from declare" -l delayed -d 'What comes through it waits as long as its header x-delay says, in ms'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from declare" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from declare" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from declare" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from list" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from list" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from list" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from list" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from list" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from list" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from list" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from list" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from delete" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from delete" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from delete" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from delete" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from delete" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from delete" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from delete" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from delete" -l if-unused -d 'Only when it has no bindings of its own'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from delete" -s y -l yes -d 'Do not ask'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from delete" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from delete" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from bind" -l key -d 'The routing key, for a topic exchange the pattern, for a consistent-hash exchange the weight' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from bind" -l header -d 'For a headers exchange: what must be there. May be given again' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from bind" -l match -d 'For a headers exchange: how many of the headers must be there' -r -f -a "all\t'All of them; those whose name begins with x- do not count'
any\t'One of them; those whose name begins with x- do not count'
all-with-x\t'All of them, whatever their name'
any-with-x\t'One of them, whatever its name'"
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from bind" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from bind" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from bind" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from bind" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from bind" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from bind" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from bind" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from bind" -l to-exchange -d 'It leads to an exchange, not to a queue'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from bind" -l any -d 'For a headers exchange: one of the headers is enough'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from bind" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from bind" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from bind" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from unbind" -l key -d 'The routing key, for a topic exchange the pattern, for a consistent-hash exchange the weight' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from unbind" -l header -d 'For a headers exchange: what must be there. May be given again' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from unbind" -l match -d 'For a headers exchange: how many of the headers must be there' -r -f -a "all\t'All of them; those whose name begins with x- do not count'
any\t'One of them; those whose name begins with x- do not count'
all-with-x\t'All of them, whatever their name'
any-with-x\t'One of them, whatever its name'"
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from unbind" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from unbind" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from unbind" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from unbind" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from unbind" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from unbind" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from unbind" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from unbind" -l to-exchange -d 'It leads to an exchange, not to a queue'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from unbind" -l any -d 'For a headers exchange: one of the headers is enough'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from unbind" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from unbind" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from unbind" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from publish" -l more-key -d 'A further routing key. May be given again' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from publish" -s p -l priority -d 'How urgent, in the words of the queue\'s scheme: a number or a name' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from publish" -l key -d 'Its key, for last-value queues, groups and filters' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from publish" -l key-weight -d 'The turns of its key beside those of others, where keys take turns and the queue\'s settings give this key no weight: 1 to 1000' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from publish" -l ttl -d 'Never deliver it after so long: 250ms, 30s, 5m, 1h30m [default: as the queue says]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from publish" -l header -d 'A header. May be given again' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from publish" -l content-type -d 'The media type of the body' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from publish" -l id -d 'Its id: makes publishing it again harmless while it is pending' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from publish" -l delay -d 'Do not deliver it before so long' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from publish" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from publish" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from publish" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from publish" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from publish" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from publish" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from publish" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from publish" -l mandatory -d 'Refuse it when no queue gets it'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from publish" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from publish" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand exchange; and __fish_seen_subcommand_from publish" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand category; and not __fish_seen_subcommand_from declare list show delete" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and not __fish_seen_subcommand_from declare list show delete" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand category; and not __fish_seen_subcommand_from declare list show delete" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and not __fish_seen_subcommand_from declare list show delete" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand category; and not __fish_seen_subcommand_from declare list show delete" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand category; and not __fish_seen_subcommand_from declare list show delete" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and not __fish_seen_subcommand_from declare list show delete" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and not __fish_seen_subcommand_from declare list show delete" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand category; and not __fish_seen_subcommand_from declare list show delete" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand category; and not __fish_seen_subcommand_from declare list show delete" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand category; and not __fish_seen_subcommand_from declare list show delete" -f -a "declare" -d 'Make a category, and groups of consumers in it; or change settings of groups that are there'
complete -c overtake -n "__fish_overtake_using_subcommand category; and not __fish_seen_subcommand_from declare list show delete" -f -a "list" -d 'List all categories, with how far their groups are behind'
complete -c overtake -n "__fish_overtake_using_subcommand category; and not __fish_seen_subcommand_from declare list show delete" -f -a "show" -d 'Show a category: each group\'s lag in each lane'
complete -c overtake -n "__fish_overtake_using_subcommand category; and not __fish_seen_subcommand_from declare list show delete" -f -a "delete" -d 'Delete a category that has no groups; or one of its groups, with all it has yet to do'
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from declare" -s g -l group -d 'A group of consumers. May be given again' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from declare" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from declare" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from declare" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from declare" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from declare" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from declare" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from declare" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from declare" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from declare" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from declare" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from list" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from list" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from list" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from list" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from list" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from list" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from list" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from list" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from show" -l redis -d 'The category in streams of Redis or Valkey, in place of the broker\'s: redis://HOST:PORT/DATABASE' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from show" -l redis-password-file -d 'A file with the password of the user in the URL, or of the one without a name [else: OVERTAKE_REDIS_PASSWORD]' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from show" -l priority-lanes -d 'Whether categories have a backfill lane, as whoever writes them has it [else: OVERTAKE__SERVER__PRIORITY_LANES__ENABLED; else both lanes are read]' -r -f -a "true\t''
false\t''"
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from show" -l priority-lanes-threshold -d 'The least priority that is not backfill [else: OVERTAKE__SERVER__PRIORITY_LANES__THRESHOLD; else 0]' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from show" -l priority-lanes-suffix -d 'What the backfill lane of `customer` is called behind `customer:` [else: OVERTAKE__SERVER__PRIORITY_LANES__BACKFILL_SUFFIX; else backfill]' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from show" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from show" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from show" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from show" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from show" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from show" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from show" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from show" -l one-lane -d 'The same as --priority-lanes=false'
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from show" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from delete" -s g -l group -d 'Only this group' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from delete" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from delete" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from delete" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from delete" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from delete" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from delete" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from delete" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from delete" -s y -l yes -d 'Do not ask'
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from delete" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from delete" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand category; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and not __fish_seen_subcommand_from init status show retry reconcile" -s c -l config -d 'Which database, which sink, and how' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand relay; and not __fish_seen_subcommand_from init status show retry reconcile" -l metrics -d 'Serve what is counted at this address, under /metrics, for Prometheus; port 0 takes a free one' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and not __fish_seen_subcommand_from init status show retry reconcile" -l log-level -d 'What to log: error, warn, info, debug or trace, also per part as in `info,overtake_outbox=debug`' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and not __fish_seen_subcommand_from init status show retry reconcile" -l log-format -d 'How to log: text for people, json for machines' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and not __fish_seen_subcommand_from init status show retry reconcile" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and not __fish_seen_subcommand_from init status show retry reconcile" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand relay; and not __fish_seen_subcommand_from init status show retry reconcile" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and not __fish_seen_subcommand_from init status show retry reconcile" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand relay; and not __fish_seen_subcommand_from init status show retry reconcile" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand relay; and not __fish_seen_subcommand_from init status show retry reconcile" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and not __fish_seen_subcommand_from init status show retry reconcile" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and not __fish_seen_subcommand_from init status show retry reconcile" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and not __fish_seen_subcommand_from init status show retry reconcile" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and not __fish_seen_subcommand_from init status show retry reconcile" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and not __fish_seen_subcommand_from init status show retry reconcile" -f -a "init" -d 'Make the table and its indexes, and the file of a SQLite database; a table that is there is looked at, and never changed'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and not __fish_seen_subcommand_from init status show retry reconcile" -f -a "status" -d 'Show what waits by priority, who has claimed rows, why rows failed, and which groups of consumers never read the backfill lane'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and not __fish_seen_subcommand_from init status show retry reconcile" -f -a "show" -d 'Show rows as they stand in the table'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and not __fish_seen_subcommand_from init status show retry reconcile" -f -a "retry" -d 'Have rows that failed, or were abandoned, tried again at once, with a fresh count of attempts'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and not __fish_seen_subcommand_from init status show retry reconcile" -f -a "reconcile" -d 'Look for what relays that died left behind, and for rows that should have been cleaned'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from init" -s c -l config -d 'Which database, which sink, and how' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from init" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from init" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from init" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from init" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from init" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from init" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from init" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from init" -l print -d 'Only print the statements, for a migration of your own. The database is not asked'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from init" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from init" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from init" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from status" -s c -l config -d 'Which database, which sink, and how' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from status" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from status" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from status" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from status" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from status" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from status" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from status" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from status" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from status" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from show" -l stream -d 'Those of this stream' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from show" -l priority -d 'Those of this priority' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from show" -l reason -d 'Those whose last error has this text in it' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from show" -s n -l limit -d 'At most so many' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from show" -s c -l config -d 'Which database, which sink, and how' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from show" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from show" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from show" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from show" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from show" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from show" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from show" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from show" -l failed -d 'Those that wait for another attempt'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from show" -l abandoned -d 'Those that were set aside'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from show" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from retry" -l stream -d 'Those of this stream' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from retry" -l priority -d 'Those of this priority' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from retry" -l reason -d 'Those whose last error has this text in it' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from retry" -s c -l config -d 'Which database, which sink, and how' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from retry" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from retry" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from retry" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from retry" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from retry" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from retry" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from retry" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from retry" -l failed -d 'Those that wait for another attempt'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from retry" -l abandoned -d 'Those that were set aside'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from retry" -l all -d 'All that failed or were abandoned. Must be said'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from retry" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from retry" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from retry" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from reconcile" -s c -l config -d 'Which database, which sink, and how' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from reconcile" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from reconcile" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from reconcile" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from reconcile" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from reconcile" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from reconcile" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from reconcile" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from reconcile" -l fix -d 'Put back what nobody has, or whose time has come, and clean what is old'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from reconcile" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from reconcile" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand relay; and __fish_seen_subcommand_from reconcile" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and not __fish_seen_subcommand_from list inspect replay replay-all purge" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and not __fish_seen_subcommand_from list inspect replay replay-all purge" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and not __fish_seen_subcommand_from list inspect replay replay-all purge" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and not __fish_seen_subcommand_from list inspect replay replay-all purge" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and not __fish_seen_subcommand_from list inspect replay replay-all purge" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and not __fish_seen_subcommand_from list inspect replay replay-all purge" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and not __fish_seen_subcommand_from list inspect replay replay-all purge" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and not __fish_seen_subcommand_from list inspect replay replay-all purge" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and not __fish_seen_subcommand_from list inspect replay replay-all purge" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and not __fish_seen_subcommand_from list inspect replay replay-all purge" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and not __fish_seen_subcommand_from list inspect replay replay-all purge" -f -a "list" -d 'List dead letters, the newest of each group first'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and not __fish_seen_subcommand_from list inspect replay replay-all purge" -f -a "inspect" -d 'Show a dead letter: where it died, why, and what it says'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and not __fish_seen_subcommand_from list inspect replay replay-all purge" -f -a "replay" -d 'Put a dead letter back into the lane it died in'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and not __fish_seen_subcommand_from list inspect replay replay-all purge" -f -a "replay-all" -d 'Put all dead letters of a category back, each into the lane it died in'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and not __fish_seen_subcommand_from list inspect replay replay-all purge" -f -a "purge" -d 'Remove all dead letters of a category'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from list" -s c -l category -d 'The category' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from list" -s g -l group -d 'Only this group of consumers' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from list" -l lane -d 'Only this lane' -r -f -a "primary\t'Everyday messages'
backfill\t'What is below the threshold'"
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from list" -l redis -d 'Those in streams of Redis or Valkey, in place of the broker\'s: redis://HOST:PORT/DATABASE' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from list" -l redis-password-file -d 'A file with the password of the user in the URL, or of the one without a name [else: OVERTAKE_REDIS_PASSWORD]' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from list" -l priority-lanes -d 'Whether categories have a backfill lane, as whoever writes them has it [else: OVERTAKE__SERVER__PRIORITY_LANES__ENABLED; else both lanes are read]' -r -f -a "true\t''
false\t''"
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from list" -l priority-lanes-threshold -d 'The least priority that is not backfill [else: OVERTAKE__SERVER__PRIORITY_LANES__THRESHOLD; else 0]' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from list" -l priority-lanes-suffix -d 'What the backfill lane of `customer` is called behind `customer:` [else: OVERTAKE__SERVER__PRIORITY_LANES__BACKFILL_SUFFIX; else backfill]' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from list" -s n -l limit -d 'At most so many of each group' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from list" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from list" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from list" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from list" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from list" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from list" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from list" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from list" -l one-lane -d 'The same as --priority-lanes=false'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from list" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from inspect" -s c -l category -d 'The category' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from inspect" -s g -l group -d 'Only this group of consumers' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from inspect" -l lane -d 'Only this lane' -r -f -a "primary\t'Everyday messages'
backfill\t'What is below the threshold'"
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from inspect" -l redis -d 'Those in streams of Redis or Valkey, in place of the broker\'s: redis://HOST:PORT/DATABASE' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from inspect" -l redis-password-file -d 'A file with the password of the user in the URL, or of the one without a name [else: OVERTAKE_REDIS_PASSWORD]' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from inspect" -l priority-lanes -d 'Whether categories have a backfill lane, as whoever writes them has it [else: OVERTAKE__SERVER__PRIORITY_LANES__ENABLED; else both lanes are read]' -r -f -a "true\t''
false\t''"
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from inspect" -l priority-lanes-threshold -d 'The least priority that is not backfill [else: OVERTAKE__SERVER__PRIORITY_LANES__THRESHOLD; else 0]' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from inspect" -l priority-lanes-suffix -d 'What the backfill lane of `customer` is called behind `customer:` [else: OVERTAKE__SERVER__PRIORITY_LANES__BACKFILL_SUFFIX; else backfill]' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from inspect" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from inspect" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from inspect" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from inspect" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from inspect" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from inspect" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from inspect" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from inspect" -l one-lane -d 'The same as --priority-lanes=false'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from inspect" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from inspect" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from inspect" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay" -s c -l category -d 'The category' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay" -s g -l group -d 'Only this group of consumers' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay" -l lane -d 'Only this lane' -r -f -a "primary\t'Everyday messages'
backfill\t'What is below the threshold'"
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay" -l redis -d 'Those in streams of Redis or Valkey, in place of the broker\'s: redis://HOST:PORT/DATABASE' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay" -l redis-password-file -d 'A file with the password of the user in the URL, or of the one without a name [else: OVERTAKE_REDIS_PASSWORD]' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay" -l priority-lanes -d 'Whether categories have a backfill lane, as whoever writes them has it [else: OVERTAKE__SERVER__PRIORITY_LANES__ENABLED; else both lanes are read]' -r -f -a "true\t''
false\t''"
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay" -l priority-lanes-threshold -d 'The least priority that is not backfill [else: OVERTAKE__SERVER__PRIORITY_LANES__THRESHOLD; else 0]' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay" -l priority-lanes-suffix -d 'What the backfill lane of `customer` is called behind `customer:` [else: OVERTAKE__SERVER__PRIORITY_LANES__BACKFILL_SUFFIX; else backfill]' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay" -l one-lane -d 'The same as --priority-lanes=false'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay-all" -s c -l category -d 'The category' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay-all" -s g -l group -d 'Only this group of consumers' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay-all" -l lane -d 'Only this lane' -r -f -a "primary\t'Everyday messages'
backfill\t'What is below the threshold'"
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay-all" -l redis -d 'Those in streams of Redis or Valkey, in place of the broker\'s: redis://HOST:PORT/DATABASE' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay-all" -l redis-password-file -d 'A file with the password of the user in the URL, or of the one without a name [else: OVERTAKE_REDIS_PASSWORD]' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay-all" -l priority-lanes -d 'Whether categories have a backfill lane, as whoever writes them has it [else: OVERTAKE__SERVER__PRIORITY_LANES__ENABLED; else both lanes are read]' -r -f -a "true\t''
false\t''"
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay-all" -l priority-lanes-threshold -d 'The least priority that is not backfill [else: OVERTAKE__SERVER__PRIORITY_LANES__THRESHOLD; else 0]' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay-all" -l priority-lanes-suffix -d 'What the backfill lane of `customer` is called behind `customer:` [else: OVERTAKE__SERVER__PRIORITY_LANES__BACKFILL_SUFFIX; else backfill]' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay-all" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay-all" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay-all" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay-all" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay-all" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay-all" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay-all" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay-all" -l one-lane -d 'The same as --priority-lanes=false'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay-all" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay-all" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from replay-all" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from purge" -s c -l category -d 'The category' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from purge" -s g -l group -d 'Only this group of consumers' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from purge" -l lane -d 'Only this lane' -r -f -a "primary\t'Everyday messages'
backfill\t'What is below the threshold'"
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from purge" -l redis -d 'Those in streams of Redis or Valkey, in place of the broker\'s: redis://HOST:PORT/DATABASE' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from purge" -l redis-password-file -d 'A file with the password of the user in the URL, or of the one without a name [else: OVERTAKE_REDIS_PASSWORD]' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from purge" -l priority-lanes -d 'Whether categories have a backfill lane, as whoever writes them has it [else: OVERTAKE__SERVER__PRIORITY_LANES__ENABLED; else both lanes are read]' -r -f -a "true\t''
false\t''"
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from purge" -l priority-lanes-threshold -d 'The least priority that is not backfill [else: OVERTAKE__SERVER__PRIORITY_LANES__THRESHOLD; else 0]' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from purge" -l priority-lanes-suffix -d 'What the backfill lane of `customer` is called behind `customer:` [else: OVERTAKE__SERVER__PRIORITY_LANES__BACKFILL_SUFFIX; else backfill]' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from purge" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from purge" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from purge" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from purge" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from purge" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from purge" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from purge" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from purge" -l one-lane -d 'The same as --priority-lanes=false'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from purge" -s y -l yes -d 'Do not ask'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from purge" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from purge" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand dlq; and __fish_seen_subcommand_from purge" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and not __fish_seen_subcommand_from apply diff list export test fmt" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and not __fish_seen_subcommand_from apply diff list export test fmt" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand routes; and not __fish_seen_subcommand_from apply diff list export test fmt" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and not __fish_seen_subcommand_from apply diff list export test fmt" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand routes; and not __fish_seen_subcommand_from apply diff list export test fmt" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand routes; and not __fish_seen_subcommand_from apply diff list export test fmt" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and not __fish_seen_subcommand_from apply diff list export test fmt" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and not __fish_seen_subcommand_from apply diff list export test fmt" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and not __fish_seen_subcommand_from apply diff list export test fmt" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and not __fish_seen_subcommand_from apply diff list export test fmt" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and not __fish_seen_subcommand_from apply diff list export test fmt" -f -a "apply" -d 'Set the routes of a manifest in place of those there are: whole or not at all'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and not __fish_seen_subcommand_from apply diff list export test fmt" -f -a "diff" -d 'Say what a manifest would change'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and not __fish_seen_subcommand_from apply diff list export test fmt" -f -a "list" -d 'List routes, the most urgent first, with what they did'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and not __fish_seen_subcommand_from apply diff list export test fmt" -f -a "export" -d 'Print the routes there are as a manifest, which can be applied again'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and not __fish_seen_subcommand_from apply diff list export test fmt" -f -a "test" -d 'Say for a message which routes match, which do not and why, and which copies are made. Nothing is published'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and not __fish_seen_subcommand_from apply diff list export test fmt" -f -a "fmt" -d 'Print a manifest in its one form. Asks no broker'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from apply" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from apply" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from apply" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from apply" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from apply" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from apply" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from apply" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from apply" -l check -d 'Only say what would change'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from apply" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from apply" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from apply" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from diff" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from diff" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from diff" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from diff" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from diff" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from diff" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from diff" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from diff" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from diff" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from diff" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from list" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from list" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from list" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from list" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from list" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from list" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from list" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from list" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from export" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from export" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from export" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from export" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from export" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from export" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from export" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from export" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from export" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from test" -l message -d 'The message as it would be published over HTTP: a file with JSON, `body`, `headers` and so on; `-` is standard input' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from test" -l with -d 'Another manifest than the one that holds' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from test" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from test" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from test" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from test" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from test" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from test" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from test" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from test" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from test" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from test" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from fmt" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from fmt" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from fmt" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from fmt" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from fmt" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from fmt" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from fmt" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from fmt" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from fmt" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand routes; and __fish_seen_subcommand_from fmt" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and not __fish_seen_subcommand_from put list show test pause resume delete" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and not __fish_seen_subcommand_from put list show test pause resume delete" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and not __fish_seen_subcommand_from put list show test pause resume delete" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and not __fish_seen_subcommand_from put list show test pause resume delete" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and not __fish_seen_subcommand_from put list show test pause resume delete" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and not __fish_seen_subcommand_from put list show test pause resume delete" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and not __fish_seen_subcommand_from put list show test pause resume delete" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and not __fish_seen_subcommand_from put list show test pause resume delete" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and not __fish_seen_subcommand_from put list show test pause resume delete" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and not __fish_seen_subcommand_from put list show test pause resume delete" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and not __fish_seen_subcommand_from put list show test pause resume delete" -f -a "put" -d 'Make an endpoint, or change the one of this name: what waits in its queue is sent to another system, the most urgent first'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and not __fish_seen_subcommand_from put list show test pause resume delete" -f -a "list" -d 'List the endpoints whose queues you may see'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and not __fish_seen_subcommand_from put list show test pause resume delete" -f -a "show" -d 'Show an endpoint: what it does, and what became of the messages of each lane'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and not __fish_seen_subcommand_from put list show test pause resume delete" -f -a "test" -d 'Connect to the receiver as the endpoint does, and say what is wrong. Nothing is sent'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and not __fish_seen_subcommand_from put list show test pause resume delete" -f -a "pause" -d 'Send nothing new until it is resumed; it stays so over a restart'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and not __fish_seen_subcommand_from put list show test pause resume delete" -f -a "resume" -d 'Send again, at once and as if nothing had failed'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and not __fish_seen_subcommand_from put list show test pause resume delete" -f -a "delete" -d 'Delete an endpoint; what waits in its queue stays there'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from put" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from put" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from put" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from put" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from put" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from put" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from put" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from put" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from put" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from put" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from list" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from list" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from list" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from list" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from list" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from list" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from list" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from list" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from show" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from show" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from show" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from show" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from show" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from show" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from show" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from show" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from test" -l with -d 'A definition to test in place of the one that is there; `-` is standard input' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from test" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from test" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from test" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from test" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from test" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from test" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from test" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from test" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from test" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from test" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from pause" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from pause" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from pause" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from pause" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from pause" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from pause" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from pause" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from pause" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from pause" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from pause" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from resume" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from resume" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from resume" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from resume" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from resume" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from resume" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from resume" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from resume" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from resume" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from resume" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from delete" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from delete" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from delete" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from delete" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from delete" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from delete" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from delete" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from delete" -s y -l yes -d 'Do not ask'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from delete" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from delete" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand endpoint; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand source; and not __fish_seen_subcommand_from put list show test pause resume delete" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and not __fish_seen_subcommand_from put list show test pause resume delete" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and not __fish_seen_subcommand_from put list show test pause resume delete" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and not __fish_seen_subcommand_from put list show test pause resume delete" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and not __fish_seen_subcommand_from put list show test pause resume delete" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and not __fish_seen_subcommand_from put list show test pause resume delete" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and not __fish_seen_subcommand_from put list show test pause resume delete" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and not __fish_seen_subcommand_from put list show test pause resume delete" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand source; and not __fish_seen_subcommand_from put list show test pause resume delete" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand source; and not __fish_seen_subcommand_from put list show test pause resume delete" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand source; and not __fish_seen_subcommand_from put list show test pause resume delete" -f -a "put" -d 'Make a source, or change the one of this name: what another system has is taken in, at least once'
complete -c overtake -n "__fish_overtake_using_subcommand source; and not __fish_seen_subcommand_from put list show test pause resume delete" -f -a "list" -d 'List the sources that you may see'
complete -c overtake -n "__fish_overtake_using_subcommand source; and not __fish_seen_subcommand_from put list show test pause resume delete" -f -a "show" -d 'Show a source: what it does, and what it took in'
complete -c overtake -n "__fish_overtake_using_subcommand source; and not __fish_seen_subcommand_from put list show test pause resume delete" -f -a "test" -d 'Connect to the other system as the source does, and say what is wrong. Nothing is taken'
complete -c overtake -n "__fish_overtake_using_subcommand source; and not __fish_seen_subcommand_from put list show test pause resume delete" -f -a "pause" -d 'Take nothing until it is resumed; it stays so over a restart'
complete -c overtake -n "__fish_overtake_using_subcommand source; and not __fish_seen_subcommand_from put list show test pause resume delete" -f -a "resume" -d 'Take messages in again'
complete -c overtake -n "__fish_overtake_using_subcommand source; and not __fish_seen_subcommand_from put list show test pause resume delete" -f -a "delete" -d 'Delete a source; what it took in stays'
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from put" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from put" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from put" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from put" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from put" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from put" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from put" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from put" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from put" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from put" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from list" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from list" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from list" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from list" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from list" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from list" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from list" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from list" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from show" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from show" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from show" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from show" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from show" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from show" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from show" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from show" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from test" -l with -d 'A definition to test in place of the one that is there; `-` is standard input' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from test" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from test" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from test" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from test" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from test" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from test" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from test" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from test" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from test" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from test" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from pause" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from pause" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from pause" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from pause" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from pause" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from pause" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from pause" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from pause" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from pause" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from pause" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from resume" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from resume" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from resume" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from resume" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from resume" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from resume" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from resume" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from resume" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from resume" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from resume" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from delete" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from delete" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from delete" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from delete" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from delete" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from delete" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from delete" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from delete" -s y -l yes -d 'Do not ask'
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from delete" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from delete" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand source; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand store; and not __fish_seen_subcommand_from check stats snapshot repair restore" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand store; and not __fish_seen_subcommand_from check stats snapshot repair restore" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand store; and not __fish_seen_subcommand_from check stats snapshot repair restore" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand store; and not __fish_seen_subcommand_from check stats snapshot repair restore" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand store; and not __fish_seen_subcommand_from check stats snapshot repair restore" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand store; and not __fish_seen_subcommand_from check stats snapshot repair restore" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand store; and not __fish_seen_subcommand_from check stats snapshot repair restore" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand store; and not __fish_seen_subcommand_from check stats snapshot repair restore" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand store; and not __fish_seen_subcommand_from check stats snapshot repair restore" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand store; and not __fish_seen_subcommand_from check stats snapshot repair restore" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand store; and not __fish_seen_subcommand_from check stats snapshot repair restore" -f -a "check" -d 'Read everything in a store and say what is wrong and where. Changes nothing'
complete -c overtake -n "__fish_overtake_using_subcommand store; and not __fish_seen_subcommand_from check stats snapshot repair restore" -f -a "stats" -d 'Show what a store takes of its disk, and what for. Changes nothing'
complete -c overtake -n "__fish_overtake_using_subcommand store; and not __fish_seen_subcommand_from check stats snapshot repair restore" -f -a "snapshot" -d 'Copy the store of a running broker, as it is at one moment, into a directory'
complete -c overtake -n "__fish_overtake_using_subcommand store; and not __fish_seen_subcommand_from check stats snapshot repair restore" -f -a "repair" -d 'Say what is damaged in a store and what can be saved of it; with --to or --apply, write that'
complete -c overtake -n "__fish_overtake_using_subcommand store; and not __fish_seen_subcommand_from check stats snapshot repair restore" -f -a "restore" -d 'Copy a snapshot to where a broker can be started on it'
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from check" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from check" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from check" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from check" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from check" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from check" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from check" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from check" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from check" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from stats" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from stats" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from stats" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from stats" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from stats" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from stats" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from stats" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from stats" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from stats" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from stats" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from snapshot" -l data-dir -d 'Copy this data directory, which no broker has open, and ask no broker' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from snapshot" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from snapshot" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from snapshot" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from snapshot" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from snapshot" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from snapshot" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from snapshot" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from snapshot" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from snapshot" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from snapshot" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from repair" -l to -d 'Write the repaired store into this directory, which is empty or not there yet' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from repair" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from repair" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from repair" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from repair" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from repair" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from repair" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from repair" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from repair" -l apply -d 'Repair the store where it is. What is damaged cannot be looked at again afterwards: copy it first, or use --to'
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from repair" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from repair" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from repair" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from restore" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from restore" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from restore" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from restore" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from restore" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from restore" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from restore" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from restore" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from restore" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand store; and __fish_seen_subcommand_from restore" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand user; and not __fish_seen_subcommand_from put list show delete allow deny" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and not __fish_seen_subcommand_from put list show delete allow deny" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand user; and not __fish_seen_subcommand_from put list show delete allow deny" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and not __fish_seen_subcommand_from put list show delete allow deny" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand user; and not __fish_seen_subcommand_from put list show delete allow deny" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand user; and not __fish_seen_subcommand_from put list show delete allow deny" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and not __fish_seen_subcommand_from put list show delete allow deny" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and not __fish_seen_subcommand_from put list show delete allow deny" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand user; and not __fish_seen_subcommand_from put list show delete allow deny" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand user; and not __fish_seen_subcommand_from put list show delete allow deny" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand user; and not __fish_seen_subcommand_from put list show delete allow deny" -f -a "put" -d 'Make a user, or change one. What is not said stays as it is'
complete -c overtake -n "__fish_overtake_using_subcommand user; and not __fish_seen_subcommand_from put list show delete allow deny" -f -a "list" -d 'List all users'
complete -c overtake -n "__fish_overtake_using_subcommand user; and not __fish_seen_subcommand_from put list show delete allow deny" -f -a "show" -d 'Show a user with tags, limits and rights'
complete -c overtake -n "__fish_overtake_using_subcommand user; and not __fish_seen_subcommand_from put list show delete allow deny" -f -a "delete" -d 'Delete a user with all rights and tokens; AMQP connections of the user are closed'
complete -c overtake -n "__fish_overtake_using_subcommand user; and not __fish_seen_subcommand_from put list show delete allow deny" -f -a "allow" -d 'Give a user rights in a virtual host, in place of those that were'
complete -c overtake -n "__fish_overtake_using_subcommand user; and not __fish_seen_subcommand_from put list show delete allow deny" -f -a "deny" -d 'Take all rights of a user in a virtual host away'
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from put" -l tag -d 'administrator, monitoring, policymaker, management or impersonator; again for more. All tags: those that were and are not said are gone' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from put" -l max-connections -d 'Most AMQP connections at once; sets both limits' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from put" -l max-channels -d 'Most channels of all AMQP connections; sets both limits' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from put" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from put" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from put" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from put" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from put" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from put" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from put" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from put" -l new-password -d 'A new password: it is asked for, or is the first line of what is piped in'
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from put" -l no-password -d 'No password: the user comes in by a certificate or a token'
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from put" -l no-tags -d 'No tags'
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from put" -l no-limits -d 'No limits'
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from put" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from put" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from put" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from list" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from list" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from list" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from list" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from list" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from list" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from list" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from list" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from show" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from show" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from show" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from show" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from show" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from show" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from show" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from show" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from delete" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from delete" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from delete" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from delete" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from delete" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from delete" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from delete" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from delete" -s y -l yes -d 'Do not ask'
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from delete" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from delete" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from allow" -l in -d 'The virtual host [default: that of --vhost]' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from allow" -l configure -d 'What may be declared and deleted' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from allow" -l write -d 'What may be published to and bound' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from allow" -l read -d 'What may be consumed, browsed, purged' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from allow" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from allow" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from allow" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from allow" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from allow" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from allow" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from allow" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from allow" -l all -d 'All rights to everything'
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from allow" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from allow" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from allow" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from deny" -l in -d 'The virtual host [default: that of --vhost]' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from deny" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from deny" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from deny" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from deny" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from deny" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from deny" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from deny" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from deny" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from deny" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand user; and __fish_seen_subcommand_from deny" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and not __fish_seen_subcommand_from put list delete" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and not __fish_seen_subcommand_from put list delete" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and not __fish_seen_subcommand_from put list delete" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and not __fish_seen_subcommand_from put list delete" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and not __fish_seen_subcommand_from put list delete" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and not __fish_seen_subcommand_from put list delete" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and not __fish_seen_subcommand_from put list delete" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and not __fish_seen_subcommand_from put list delete" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and not __fish_seen_subcommand_from put list delete" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and not __fish_seen_subcommand_from put list delete" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and not __fish_seen_subcommand_from put list delete" -f -a "put" -d 'Make a virtual host, or change what is said of it: what is not said is empty, or has no limit. What is in it stays'
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and not __fish_seen_subcommand_from put list delete" -f -a "list" -d 'List the virtual hosts that you may enter'
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and not __fish_seen_subcommand_from put list delete" -f -a "delete" -d 'Delete a virtual host with its queues, their messages, its exchanges, and all rights in it'
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from put" -l description -d 'What it is for' -r
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from put" -l tag -d 'A word to find it by; again for more' -r
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from put" -l max-queues -d 'At most so many queues' -r
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from put" -l max-connections -d 'At most so many AMQP connections' -r
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from put" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from put" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from put" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from put" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from put" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from put" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from put" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from put" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from put" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from put" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from list" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from list" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from list" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from list" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from list" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from list" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from list" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from list" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from delete" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from delete" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from delete" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from delete" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from delete" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from delete" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from delete" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from delete" -s y -l yes -d 'Do not ask'
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from delete" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from delete" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand vhost; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand policy; and not __fish_seen_subcommand_from set list remove" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand policy; and not __fish_seen_subcommand_from set list remove" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand policy; and not __fish_seen_subcommand_from set list remove" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand policy; and not __fish_seen_subcommand_from set list remove" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand policy; and not __fish_seen_subcommand_from set list remove" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand policy; and not __fish_seen_subcommand_from set list remove" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand policy; and not __fish_seen_subcommand_from set list remove" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand policy; and not __fish_seen_subcommand_from set list remove" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand policy; and not __fish_seen_subcommand_from set list remove" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand policy; and not __fish_seen_subcommand_from set list remove" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand policy; and not __fish_seen_subcommand_from set list remove" -f -a "set" -d 'Set a policy: it holds at once for every queue whose name its pattern matches, also for those that are there'
complete -c overtake -n "__fish_overtake_using_subcommand policy; and not __fish_seen_subcommand_from set list remove" -f -a "list" -d 'List policies'
complete -c overtake -n "__fish_overtake_using_subcommand policy; and not __fish_seen_subcommand_from set list remove" -f -a "remove" -d 'Remove a policy: what it said holds no more'
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from set" -l priority -d 'Of those that match the one with the highest priority holds' -r
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from set" -l apply-to -d 'What it is for' -r -f -a "queues\t'Queues'
exchanges\t'Exchanges'
all\t'Both'"
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from set" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from set" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from set" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from set" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from set" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from set" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from set" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from set" -l operator -d 'An operator policy: it bounds what users and their policies say'
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from set" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from set" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from set" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from list" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from list" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from list" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from list" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from list" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from list" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from list" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from list" -l operator -d 'Operator policies'
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from list" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from remove" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from remove" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from remove" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from remove" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from remove" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from remove" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from remove" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from remove" -l operator -d 'An operator policy'
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from remove" -s y -l yes -d 'Do not ask'
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from remove" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from remove" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand policy; and __fish_seen_subcommand_from remove" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and not __fish_seen_subcommand_from export import" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and not __fish_seen_subcommand_from export import" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and not __fish_seen_subcommand_from export import" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and not __fish_seen_subcommand_from export import" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and not __fish_seen_subcommand_from export import" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and not __fish_seen_subcommand_from export import" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and not __fish_seen_subcommand_from export import" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and not __fish_seen_subcommand_from export import" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and not __fish_seen_subcommand_from export import" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and not __fish_seen_subcommand_from export import" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and not __fish_seen_subcommand_from export import" -f -a "export" -d 'Write all that is declared into a file: virtual hosts, users, rights, queues, exchanges, bindings. Messages are not in it'
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and not __fish_seen_subcommand_from export import" -f -a "import" -d 'Declare all that is in a file, also one that RabbitMQ exported. What is there and the same stays as it is'
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and __fish_seen_subcommand_from export" -l in -d 'Only this virtual host, without users; --vhost says the same [default: all]' -r
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and __fish_seen_subcommand_from export" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and __fish_seen_subcommand_from export" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and __fish_seen_subcommand_from export" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and __fish_seen_subcommand_from export" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and __fish_seen_subcommand_from export" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and __fish_seen_subcommand_from export" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and __fish_seen_subcommand_from export" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and __fish_seen_subcommand_from export" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and __fish_seen_subcommand_from export" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and __fish_seen_subcommand_from import" -l in -d 'All of it into this virtual host: a file that was exported of one; --vhost says the same [default: as the file says]' -r
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and __fish_seen_subcommand_from import" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and __fish_seen_subcommand_from import" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and __fish_seen_subcommand_from import" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and __fish_seen_subcommand_from import" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and __fish_seen_subcommand_from import" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and __fish_seen_subcommand_from import" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and __fish_seen_subcommand_from import" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and __fish_seen_subcommand_from import" -l dry-run -d 'Only say what would be changed'
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and __fish_seen_subcommand_from import" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and __fish_seen_subcommand_from import" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand definitions; and __fish_seen_subcommand_from import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand token; and not __fish_seen_subcommand_from make list revoke" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand token; and not __fish_seen_subcommand_from make list revoke" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand token; and not __fish_seen_subcommand_from make list revoke" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand token; and not __fish_seen_subcommand_from make list revoke" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand token; and not __fish_seen_subcommand_from make list revoke" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand token; and not __fish_seen_subcommand_from make list revoke" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand token; and not __fish_seen_subcommand_from make list revoke" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand token; and not __fish_seen_subcommand_from make list revoke" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand token; and not __fish_seen_subcommand_from make list revoke" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand token; and not __fish_seen_subcommand_from make list revoke" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand token; and not __fish_seen_subcommand_from make list revoke" -f -a "make" -d 'Make a token, and print it: this once, and never again'
complete -c overtake -n "__fish_overtake_using_subcommand token; and not __fish_seen_subcommand_from make list revoke" -f -a "list" -d 'List tokens: your own, and for administrators all. What they say is not shown'
complete -c overtake -n "__fish_overtake_using_subcommand token; and not __fish_seen_subcommand_from make list revoke" -f -a "revoke" -d 'Revoke a token: nobody may do anything with it any more'
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from make" -l label -d 'What it is for' -r
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from make" -l for -d 'Whose it is, if not your own; administrators make others\'' -r
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from make" -l expires-in -d 'It ends after so long: 30d, 12h; else never' -r
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from make" -l in -d 'Only in this virtual host' -r
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from make" -l configure -d 'Only what this matches may be declared and deleted' -r
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from make" -l write -d 'Only what this matches may be published to and bound' -r
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from make" -l read -d 'Only what this matches may be consumed, browsed, purged' -r
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from make" -l tag -d 'Of the user\'s tags this one; again for more. None unless it is said' -r
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from make" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from make" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from make" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from make" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from make" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from make" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from make" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from make" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from make" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from make" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from list" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from list" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from list" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from list" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from list" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from list" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from list" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from list" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from revoke" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from revoke" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from revoke" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from revoke" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from revoke" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from revoke" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from revoke" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from revoke" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from revoke" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand token; and __fish_seen_subcommand_from revoke" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand whoami" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand whoami" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand whoami" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand whoami" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand whoami" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand whoami" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand whoami" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand whoami" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand whoami" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand whoami" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand audit" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand audit" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand audit" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand audit" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand audit" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand audit" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand audit" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand audit" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand audit" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand audit" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand health" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand health" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand health" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand health" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand health" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand health" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand health" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand health" -l live -d 'Only whether the process answers, not whether it wants requests'
complete -c overtake -n "__fish_overtake_using_subcommand health" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand health" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand health" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and not __fish_seen_subcommand_from status orphans adopt discard" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and not __fish_seen_subcommand_from status orphans adopt discard" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and not __fish_seen_subcommand_from status orphans adopt discard" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and not __fish_seen_subcommand_from status orphans adopt discard" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and not __fish_seen_subcommand_from status orphans adopt discard" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and not __fish_seen_subcommand_from status orphans adopt discard" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and not __fish_seen_subcommand_from status orphans adopt discard" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and not __fish_seen_subcommand_from status orphans adopt discard" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and not __fish_seen_subcommand_from status orphans adopt discard" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and not __fish_seen_subcommand_from status orphans adopt discard" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and not __fish_seen_subcommand_from status orphans adopt discard" -f -a "status" -d 'Show the brokers on the same servers, the servers, and how many partitions of each queue they have'
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and not __fish_seen_subcommand_from status orphans adopt discard" -f -a "orphans" -d 'List queues whose definition the servers have lost: their messages are kept, and nobody is given them'
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and not __fish_seen_subcommand_from status orphans adopt discard" -f -a "adopt" -d 'Define a queue again whose definition was lost, as it was: its messages are delivered from then on'
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and not __fish_seen_subcommand_from status orphans adopt discard" -f -a "discard" -d 'Remove a queue whose definition was lost, with its messages'
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from status" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from status" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from status" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from status" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from status" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from status" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from status" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from status" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from status" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from orphans" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from orphans" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from orphans" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from orphans" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from orphans" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from orphans" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from orphans" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from orphans" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from orphans" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from orphans" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from adopt" -l name -d 'Another name than it had, where a queue has that by now' -r
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from adopt" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from adopt" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from adopt" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from adopt" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from adopt" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from adopt" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from adopt" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from adopt" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from adopt" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from adopt" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from discard" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from discard" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from discard" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from discard" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from discard" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from discard" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from discard" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from discard" -s y -l yes -d 'Do not ask'
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from discard" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from discard" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand cluster; and __fish_seen_subcommand_from discard" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l nodes -d 'Look at these servers, whatever the configuration says: a cluster, unless --engine says redis' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l redis-password-file -d 'A file with the password for --nodes [else: OVERTAKE_REDIS_PASSWORD]' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l config -d 'The configuration file [default: $OVERTAKE_CONFIG, else overtake.toml in $CONFIGURATION_DIRECTORY or /etc/overtake if it is there]' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l http -d 'Address and port to serve HTTP on; port 0 takes a free one. [default: 127.0.0.1:15672]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l https -d 'Address and port to serve HTTP under TLS on, with the certificate of the section tls; off: it is not served. [default: off]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l max-request-bytes -d 'Largest body of one request; a larger one is refused with 413. [default: 64MiB]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l http-hosts -d 'Host names under which clients or a proxy reach the broker, with or without a port; IP addresses, localhost and the machine\'s own name are always served. Empty: clients on other machines may use any name, clients on this machine no other. [default: []]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l http-max-connections -d 'Most connections at once; on further ones only health probes are answered, anything else gets 503. [default: 10000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l http-header-timeout-ms -d 'How long a client may take to send the head of a request, and pause within a body; an idle connection is closed after it, too. [default: 30000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l amqp -d 'Address and port to serve AMQP 0-9-1 on; port 0 takes a free one; off: it is not served. [default: 127.0.0.1:5672]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l amqps -d 'Address and port to serve AMQP under TLS on, with the certificate of the section tls; 5671 is where clients look. [default: off]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l amqp-max-connections -d 'Most connections at once; further ones wait. [default: 20000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l amqp-max-channels -d 'Most channels of one connection. [default: 2047]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l amqp-heartbeat-ms -d 'How long a connection may be silent: the heartbeat that clients are asked for; they may ask for less. 0: for ever. [default: 60000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l amqp-send-timeout-ms -d 'How long a client may take no byte although some wait for it; then it is disconnected, however silent it may be. One that reads slowly is not. 0: for ever. [default: 60000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l tls-cert -d 'A PEM file with the broker\'s certificate and those between it and the authority.' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l tls-key -d 'A PEM file with the key of that certificate.' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l tls-client-ca -d 'A PEM file with the authorities that sign certificates of clients, which then are who those say (EXTERNAL). Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l admin-user -d 'An administrator who is made at start unless there is a user of this name. Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l admin-password-file -d 'The file with the password of that administrator; a line break at its end does not count.' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l load-definitions -d 'A file of definitions, ours or RabbitMQ\'s, that is imported at each start: what is there and the same stays as it is. Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l audit-file -d 'A file to which every administrative action is added, as a line of JSON. Empty: they are in the log only.' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l link-local-targets -d 'Whether endpoints and sources may connect to link-local addresses (169.254.0.0/16, fe80::/10) and to those where clouds serve metadata. [default: false]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l engine -d 'Where messages are kept: embedded, in a store on this machine; redis, on one server of Redis or Valkey; cluster, on a cluster of them. [default: embedded]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l engine-nodes -d 'For redis the server, for cluster some of its nodes, of which one that answers is enough: HOST:PORT, or rediss://HOST:PORT under TLS. [default: []]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l engine-username -d 'Who asks there, with a password. Empty: the user without a name.' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l engine-password -d 'Where the password for them is: { file = "…" } or { env = "…" }; read for each connection. [default: off]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l engine-replicas-acked -d 'Replicas that must have a message before it is confirmed: as many as can be promoted. auto: 1 for cluster, 0 for redis. [default: auto]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l engine-fsync-acked -d 'Whether it must be in the logs of them and of the primary, too (WAITAOF, from Redis 7.2 and Valkey 7.2 on). [default: false]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l engine-sweep-ms -d 'How often leases, delays and times to live that are over are looked for there, and heads of which no push came. [default: 1000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l engine-tls-ca -d 'A PEM file with the authorities that sign certificates of the servers. Empty: this machine\'s.' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l engine-tls-cert -d 'A PEM file with the certificate to show them. Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l engine-tls-key -d 'A PEM file with the key of that certificate.' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l data-dir -d 'The directory of the store. Unset: $STATE_DIRECTORY, else /var/lib/overtake, else $XDG_DATA_HOME/overtake.' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l shards -d 'Loops and journals that virtual hosts are spread over, each for a core, 1 to 32; of a store that has some it never becomes less. [default: 1]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l segment-bytes -d 'Size of one journal file. [default: 64MiB]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l memory-bytes -d 'Memory that waiting messages may take; beyond it the least urgent ones wait on disk only. [default: 128MiB]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l on-damage -d 'What to do when the store is damaged: refuse to start, or skip what is damaged and say so. [default: refuse]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l disk-low-bytes -d 'With less free on its disk publishes are refused. 0: when it is full; auto: a twentieth of the disk, at most 256MiB. [default: auto]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l disk-high-bytes -d 'With more free on its disk they are taken again. auto: one and a half times disk_low_bytes. [default: auto]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l routes-file -d 'A manifest with the routes of the virtual host `/`, JSON or TOML, set at start and whenever the file changes. Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l max-message-bytes -d 'Largest message; a queue may allow less. [default: 16MiB]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l default-ttl-ms -d 'Time to live of messages that have none from anywhere else; 0 is for ever. [default: 0]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l log-level -d 'What to log: error, warn, info, debug or trace, also per part as in `info,overtake_engine=debug`. [default: info]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l log-format -d 'How to log: text for people, json for machines. [default: text]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l otlp-endpoint -d 'Address of a collector that takes OTLP over HTTP, such as http://127.0.0.1:4318; off: nothing is pushed. [default: off]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l otlp-headers -d 'Headers for the collector, percent-encoded where need be; they are never shown.' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l otlp-interval-ms -d 'How often everything is pushed. [default: 60000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l traces-sample -d 'Of the traces that publishers sample, this share is told to the collector, 0 to 1; 0: none, and no message is looked at. [default: 0]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l trace-url -d 'Address of a page that shows a trace, with {trace_id} in it; answers about a traced message link to it. Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l service-name -d 'The name of the service that the broker says it is (service.name). [default: overtake]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l resource-attributes -d 'What else it says of itself, such as deployment.environment=prod, percent-encoded where need be.' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l drain-timeout-ms -d 'How long a stopping server waits for requests that are under way, and a drain for what is leased unless it is told. [default: 10000]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l ports-file -d 'A file to write the bound addresses to, as JSON, once the server is ready. Empty: none.' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l connection-memory-bytes -d 'Memory for messages on their way: in requests, in line to be stored, pushed to clients that have not taken them. auto: a quarter of what the process may have, 32MiB to 512MiB. [default: auto]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l priority-lanes -d 'Whether what is below the threshold has a lane of its own, which is served when nothing else waits; else a category has one lane. [default: false]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l priority-lanes-threshold -d 'The least priority that is not backfill, a whole number. [default: 0]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l priority-lanes-suffix -d 'What the backfill lane of the category `customer` is called behind `customer:`. [default: backfill]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l queue -d 'Declare a queue at start, with settings as a TOML inline table. May be given again.' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand drain" -l within -d 'How long what is leased may take: 30s, 5m; else the broker\'s server.drain_timeout_ms' -r
complete -c overtake -n "__fish_overtake_using_subcommand drain" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand drain" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand drain" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand drain" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand drain" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand drain" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand drain" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand drain" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand drain" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand drain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c overtake -n "__fish_overtake_using_subcommand completions" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand completions" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand completions" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand completions" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand completions" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand completions" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand completions" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand completions" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand completions" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand completions" -s h -l help -d 'Print help'
complete -c overtake -n "__fish_overtake_using_subcommand man" -l url -d 'The broker to talk to' -r
complete -c overtake -n "__fish_overtake_using_subcommand man" -l ca-file -d 'For https: a PEM file with the authorities that may sign the broker\'s certificate, in place of the system\'s' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand man" -l user -d 'Who asks. The password is in OVERTAKE_PASSWORD or --password-file, or is asked for; without a user and a token: guest, at a broker on this machine' -r
complete -c overtake -n "__fish_overtake_using_subcommand man" -l password-file -d 'A file with the password of --user' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand man" -l token-file -d 'A file with a token, in place of a user; or the token is in OVERTAKE_TOKEN' -r -F
complete -c overtake -n "__fish_overtake_using_subcommand man" -l vhost -d 'The virtual host in which queues and exchanges are meant [default: /]' -r
complete -c overtake -n "__fish_overtake_using_subcommand man" -l timeout -d 'Give up on an answer after so long: 500ms, 30s, 5m, 1h30m' -r
complete -c overtake -n "__fish_overtake_using_subcommand man" -l json -d 'Print JSON for programs'
complete -c overtake -n "__fish_overtake_using_subcommand man" -s q -l quiet -d 'Print nothing but what was asked for'
complete -c overtake -n "__fish_overtake_using_subcommand man" -s h -l help -d 'Print help (see more with \'--help\')'
