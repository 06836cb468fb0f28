// The steps of a schema change, each as the server words it, and those that are refused with the reason.
import { Badge } from "./ui";

export interface Step {
  kind: string;
  text?: string;
  reason?: string;
  code?: string;
  mode?: string;
  [more: string]: unknown;
}
export interface Planned {
  supported: boolean;
  step_count: number;
  steps: Step[];
}

/** What a step is about: the server's own words, else the type or property with the values of the step, whatever they are. */
function words({ kind, code, reason, mode, text, entity, type_kind, type_name, property_name, from, to, ...rest }: Step): string {
  if (text) return text;
  const subject = entity ? String(entity).replace(/^(?:node|edge):/, "") : [type_name, property_name].filter(Boolean).join(".");
  const values = Object.values(rest).filter((each) => typeof each === "string" || typeof each === "number");
  return [subject, from && to ? `${from} → ${to}` : (from ?? to), ...values].filter(Boolean).join(" ");
}

function isRefused(step: Step): boolean {
  return step.kind === "unsupported_change" || step.reason !== undefined;
}

export function StepList({ steps }: { steps: Step[] }) {
  return (
    <ul class="plain-list steps">
      {steps.map((step) => (
        <li>
          <span class="step-text">
            <Badge kind={isRefused(step) ? "bad" : /^(?:drop|remove)/.test(step.kind) ? "warn" : "good"}>{isRefused(step) ? "refused" : step.kind.replaceAll("_", " ")}</Badge>{" "}
            <span>{words(step)}</span> {step.mode === "soft" && <span class="dim">(history keeps it)</span>}
          </span>
          {isRefused(step) && <span class="step-reason">{step.reason} {step.code && <code>{step.code}</code>}</span>}
        </li>
      ))}
    </ul>
  );
}
