// With any bundler: `npm install sfumato-survey`, and import it by its name. It is an ES module without dependencies.
import { keepSending, Survey } from "sfumato-survey";

/** Load the survey and the team's key, which is built into the application. */
export async function ask(address, publicKey, value) {
  const survey = await Survey.load(address, { publicKey, cap: "2" });
  const report = await survey.report(value);
  const delivery = await survey.send();
  if (delivery.waiting) keepSending(survey.device);
  return { report, delivery };
}
