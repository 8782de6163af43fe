package iam

import (
	"context"
	"slices"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// PutInline gives a holder an inline policy in place of the one of that name.
// *policy.Error (IAM PutUserPolicy, PutGroupPolicy).
func (d *Directory) PutInline(ctx context.Context, h Holder, name string, text []byte) error {
	if err := validName("policyName", name, maxName); err != nil {
		return err
	}
	if _, err := compile(text); err != nil {
		return err
	}
	return d.change(ctx, "Put%Policy", h, "", func(_ cluster.Txn, _ *found, p *record.Permissions) error {
		i, found := findInline(p, name)
		if found {
			p.Inline[i].Text = text
		} else {
			p.Inline = slices.Insert(p.Inline, i, record.InlinePolicy{Name: name, Text: text})
		}
		return inlineFits(h, p)
	})
}

func findInline(p *record.Permissions, name string) (int, bool) {
	return slices.BinarySearchFunc(p.Inline, name, func(in record.InlinePolicy, name string) int { return strings.Compare(in.Name, name) })
}

func inlineFits(h Holder, p *record.Permissions) error {
	most, sum, bytes := [...]int{User: maxInlineUser, InGroup: maxInlineGroup, InRole: maxInlineRole}[h.Kind], 0, 0
	for _, in := range p.Inline {
		sum += weight(in.Text)
		bytes += len(in.Text)
	}
	if sum > most || bytes > maxTextBytes {
		return fault(LimitExceeded, "Maximum policy size of %d bytes exceeded for %s %s", most, strings.ToLower(h.Kind.String()), h.Name)
	}
	return nil
}

// Inline returns the text of an inline policy (IAM GetUserPolicy, GetGroupPolicy).
func (d *Directory) Inline(ctx context.Context, h Holder, name string) (text []byte, err error) {
	err = d.view(ctx, d.aboutHolder(actionOf("Get%Policy", h), h, ""), func(r cluster.Reader) error {
		_, p, err := d.permissions(r, h)
		if err != nil {
			return err
		}
		i, found := findInline(&p, name)
		if !found {
			return noInline(h, name)
		}
		text = p.Inline[i].Text
		return nil
	})
	return text, err
}

func noInline(h Holder, name string) error {
	return fault(NoSuchEntity, "The %s policy with name %s cannot be found.", strings.ToLower(h.Kind.String()), name)
}

// InlineNames returns the names of a holder's inline policies in order (IAM
// ListUserPolicies, ListGroupPolicies).
func (d *Directory) InlineNames(ctx context.Context, h Holder) (names []string, err error) {
	err = d.view(ctx, d.aboutHolder(actionOf("List%Policies", h), h, ""), func(r cluster.Reader) error {
		names = nil
		_, p, err := d.permissions(r, h)
		for _, in := range p.Inline {
			names = append(names, in.Name)
		}
		return err
	})
	return names, err
}

// DeleteInline removes an inline policy (IAM DeleteUserPolicy, DeleteGroupPolicy).
func (d *Directory) DeleteInline(ctx context.Context, h Holder, name string) error {
	return d.change(ctx, "Delete%Policy", h, "", func(_ cluster.Txn, _ *found, p *record.Permissions) error {
		i, found := findInline(p, name)
		if !found {
			return noInline(h, name)
		}
		p.Inline = slices.Delete(p.Inline, i, i+1)
		return nil
	})
}
