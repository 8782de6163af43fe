package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/urfave/cli/v2"

	"ogw/httpapi/admin"
)

// policyCommand has a subcommand for each operation.
func policyCommand(env *environment) *cli.Command {
	sub := operations(func(op string) command { return &policy{common: common{env: env}, op: op} })
	to := func() []cli.Flag {
		return []cli.Flag{
			&cli.StringFlag{Name: "user", Usage: "the user of that `NAME`"},
			&cli.StringFlag{Name: "group", Usage: "the group of that `NAME`"},
			&cli.StringFlag{Name: "role", Usage: "the role of that `NAME`"},
		}
	}
	return &cli.Command{
		Name: "policy", Usage: "put, attach, list and remove policies, and tell who may do what",
		Action: noSubcommand,
		Subcommands: []*cli.Command{
			sub("put", "make a policy, or put another version of it in force", "NAME FILE"),
			sub("list", "list all policies", ""),
			sub("show", "print the document of a policy", "NAME"),
			sub("attach", "have a user, group or role go by a policy", "NAME", to()...),
			sub("detach", "take a policy from a user, group or role", "NAME", to()...),
			sub("remove", "remove a policy that nobody goes by", "NAME"),
			sub("simulate", "tell who may do something, and by which statement", "ACTION BUCKET[/KEY]|ARN",
				&cli.StringSliceFlag{Name: "who", Usage: "`USER`, role/NAME, an ARN or anonymous; several times for several", DefaultText: "all of them"},
				&cli.StringSliceFlag{Name: "key", Usage: "condition key of the request, `NAME=VALUE`, such as aws:SourceIp=192.0.2.7"}),
		},
	}
}

// policy is one operation on policies.
type policy struct {
	common
	op       string
	name     string
	document json.RawMessage
	kind, to string
	simulate admin.Simulate
}

// ParseFlags implements command.
func (o *policy) ParseFlags(c *cli.Context) (err error) {
	switch o.op {
	case "list":
		err = noArgs(c)
	case "put":
		var file string
		if o.name, file, err = twoArgs(c, "the policy's name", "the file of its document"); err == nil {
			o.document, err = document(file)
		}
	case "simulate":
		if o.simulate.Action, o.simulate.Resource, err = twoArgs(c, "the action", "the resource"); err == nil {
			err = o.parseSimulate(c)
		}
	default:
		o.name, err = oneArg(c, "the policy's name")
	}
	if err == nil && (o.op == "attach" || o.op == "detach") {
		err = o.parseHolder(c)
	}
	return errors.Join(err, o.common.ParseFlags(c))
}

func (o *policy) parseSimulate(c *cli.Context) error {
	o.simulate.Who, o.simulate.Keys = c.StringSlice("who"), map[string][]string{}
	for _, key := range c.StringSlice("key") {
		name, value, ok := strings.Cut(key, "=")
		if !ok {
			return usageError("--key %s is not of the form NAME=VALUE", key)
		}
		o.simulate.Keys[name] = append(o.simulate.Keys[name], value)
	}
	return nil
}

func (o *policy) parseHolder(c *cli.Context) error {
	for _, kind := range []string{"user", "group", "role"} {
		if name := c.String(kind); name != "" {
			if o.to != "" {
				return usageError("--%s and --%s: one at a time, please", o.kind, kind)
			}
			o.kind, o.to = kind, name
		}
	}
	if o.to == "" {
		return usageError("say whom by --user, --group or --role")
	}
	return nil
}

// Run implements command.
func (o *policy) Run(ctx context.Context) error {
	return o.with(ctx, func(s *session) error {
		switch o.op {
		case "put":
			return o.show(s.PutPolicy(ctx, o.name, o.document))
		case "show":
			return o.show(s.Policy(ctx, o.name))
		case "attach", "detach":
			_, err := s.SetAttached(ctx, o.name, o.kind, o.to, o.op == "attach")
			return o.done(err, o.op+"ed", o.name, "policy "+o.name+" is "+o.op+"ed: "+o.kind+" "+o.to)
		case "remove":
			_, err := s.RemovePolicy(ctx, o.name)
			return o.done(err, "removed", o.name, "policy "+o.name+" is removed")
		case "simulate":
			return o.showSimulated(s.Simulate(ctx, o.simulate))
		}
		return o.list(s.Policies(ctx))
	})
}

func (o *policy) show(p admin.Policy, err error) error {
	if err != nil {
		return err
	}
	if o.json {
		return o.printJSON(p)
	}
	o.printf("policy    %s (version v%d)\nID        %s\nARN       %s\nattached  %d\ndocument  %s\n", p.Name, p.Version, p.ID, p.ARN, p.Attached, p.Document)
	return nil
}

func (o *policy) list(list []admin.Policy, err error) error {
	if err != nil {
		return err
	}
	if o.json {
		return o.printJSON(list)
	}
	rows := [][]string{{"NAME", "ID", "VERSION", "ATTACHED", "BOUNDS", "ARN"}}
	for _, p := range list {
		rows = append(rows, []string{p.Name, p.ID, "v" + itoa(int64(p.Version)), itoa(int64(p.Attached)), itoa(int64(p.Bounds)), p.ARN})
	}
	return o.table(rows)
}

func (o *policy) showSimulated(list []admin.Simulated, err error) error {
	if err != nil {
		return err
	}
	if o.json {
		return o.printJSON(list)
	}
	rows := [][]string{{"WHO", "MAY", "WHY"}}
	for _, x := range list {
		may := "no"
		if x.Allowed {
			may = "yes"
		}
		rows = append(rows, []string{x.Who, may, x.Why})
	}
	return o.table(rows)
}
