package rpc

import "ogw/nfsserver/xdr"

// Flavors of credentials (RFC 5531 section 8.2).
const (
	AuthNone = 0
	AuthUnix = 1
)

const (
	maxAuthBytes    = 400 // opaque_auth body, RFC 5531 section 8.2
	maxMachineBytes = 255 // machinename of AUTH_SYS, appendix A
	maxGIDs         = 16  // gids of AUTH_SYS, appendix A
)

// Reasons for a denied call (auth_stat, RFC 5531 section 9).
const (
	authBadCred = 1
	authTooWeak = 5
)

// Cred is who sends a call.
type Cred struct {
	Flavor  uint32
	UID     uint32
	GID     uint32
	GIDs    []uint32 // supplementary groups, at most 16
	Machine []byte   // the client's name for itself; aliases the record
	gids    [maxGIDs]uint32
}

// parse decodes credential and verifier from a call header and returns an
// auth_stat, 0 for success. A malformed frame is the Reader's error.
func (c *Cred) parse(r *xdr.Reader) (authStat uint32) {
	c.Flavor, c.UID, c.GID, c.GIDs, c.Machine = r.Uint32(), 0, 0, nil, nil
	body := xdr.NewReader(r.Opaque(maxAuthBytes))
	r.Uint32() // the verifier's flavor: AUTH_NONE with both of ours
	r.Opaque(maxAuthBytes)
	if r.Err() != nil {
		return 0
	}
	switch c.Flavor {
	case AuthNone:
		return 0
	case AuthUnix:
		return c.parseUnix(&body)
	}
	return authTooWeak
}

func (c *Cred) parseUnix(r *xdr.Reader) uint32 {
	r.Uint32() // stamp: arbitrary
	c.Machine = r.Opaque(maxMachineBytes)
	c.UID, c.GID = r.Uint32(), r.Uint32()
	n := r.Uint32()
	if n > maxGIDs {
		return authBadCred
	}
	c.GIDs = c.gids[:n]
	for i := range c.GIDs {
		c.GIDs[i] = r.Uint32()
	}
	if r.Err() != nil || r.Len() != 0 {
		return authBadCred
	}
	return 0
}
