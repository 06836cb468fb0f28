// Parts that are loaded when they are first shown.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Loading, Problem } from "./ui";

export function lazily<Props>(load: () => Promise<{ default: ComponentType<Props> }>, what: string): ComponentType<Props> {
  let loaded: ComponentType<Props> | null = null;
  return function Lazy(props: Props) {
    const [Part, set] = useState<ComponentType<Props> | null>(() => loaded);
    const [failed, setFailed] = useState(false);
    useEffect(() => {
      if (!Part)
        load().then(
          (found) => {
            loaded = found.default;
            set(() => found.default);
          },
          () => setFailed(true),
        );
    }, []);
    if (failed) return <Problem error={`The ${what} could not be loaded; reload the page when the server is back.`} />;
    const Known = Part as any;
    return Part ? <Known {...props} /> : <Loading what={`Loading the ${what}`} />;
  };
}

export const GraphView = lazily(() => import("./graphview"), "picture");
export const Editor = lazily(() => import("./editor"), "editor");
