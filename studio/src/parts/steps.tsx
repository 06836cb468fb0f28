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

/** What a step is about: the server's own words, else its values. */
function words({ kind, code, reason, mode, text, ...rest }: Step): string {
  return text ?? Object.values(rest).filter((each) => typeof each === "string" || typeof each === "number").join(" ");
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
