package main

import "net"

// notify sends systemd a state such as READY=1 (sd_notify(3)), if it asked
// for that. Nobody listening is not an error: it is the usual case.
func notify(getenv func(string) string, state string) error {
	path := getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return err
	}
	_, err = c.Write([]byte(state))
	if e := c.Close(); err == nil {
		err = e
	}
	return err
}
