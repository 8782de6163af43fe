// Package config is ogw's configuration.
//
//	defaults ← file (TOML) ← environment (OGW_…) ← flags (--set, …)
//
// What stands further right wins. Without a file and without gateways from
// elsewhere, three gateways are configured: S3, REST and NFS on loopback.
//
// Every key has one name: SECTION.KEY in --set, [SECTION] KEY in the file,
// OGW_SECTION_KEY in the environment. Of a gateway, only its address can be
// set outside of the file: --s3, --rest, --nfs and OGW_S3_LISTEN, … change
// the first gateway of that protocol, add one, or with "off" remove all.
//
// Unknown keys are refused, with their line and the nearest key that exists;
// so are keys that the gateway's protocol does not have.
package config
